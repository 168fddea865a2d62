"""Bodies of HumanEval's functions in Java, Go and Rust; each with a text in it and its wrong replacement."""

from __future__ import annotations

SOLUTIONS: dict[str, dict[str, tuple[str, str, str]]] = {
    "has_close_elements": {
        "java": (
            "for (int i = 0; i < a0.size(); i++) for (int j = i + 1; j < a0.size(); j++)\n"
            "  if (Math.abs(a0.get(i) - a0.get(j)) < a1) return true;\nreturn false;",
            "Math.abs(a0.get(i) - a0.get(j)) < a1",
            "a0.get(i) - a0.get(j) < a1",
        ),
        "go": (
            "for i, x := range a0 { for j, y := range a0 { if i != j && math.Abs(x-y) < a1 { return true } } }\n"
            "return false",
            "i != j && ",
            "",
        ),
        "rust": (
            "for i in 0..a0.len() { for j in i + 1..a0.len() { if (a0[i] - a0[j]).abs() < a1 { return true; } }"
            " }\nfalse",
            "(a0[i] - a0[j]).abs() < a1",
            "a0[i] == a0[j]",
        ),
    },
    "intersperse": {
        "java": (
            "List<Integer> r = new ArrayList<>();\nfor (int x : a0) { if (!r.isEmpty()) r.add(a1); r.add(x);"
            " }\nreturn r;",
            "if (!r.isEmpty()) ",
            "",
        ),
        "go": (
            "r := []int{}\nfor i, x := range a0 { if i > 0 { r = append(r, a1) }; r = append(r, x) }\nreturn r",
            "i > 0",
            "i > 1",
        ),
        "rust": (
            "let mut r = Vec::new();\nfor (i, x) in a0.iter().enumerate() { if i > 0 { r.push(a1); } r.push(*x); }\nr",
            "r.push(*x)",
            "r.push(*x + 0 * a1); r.truncate(4)",
        ),
    },
    "sum_product": {
        "java": (
            "int s = 0, p = 1;\nfor (int x : a0) { s += x; p *= x; }\nreturn Pair.with(s, p);",
            "Pair.with(s, p)",
            "Pair.with(p, s)",
        ),
        "go": ("s, p := 0, 1\nfor _, x := range a0 { s += x; p *= x }\nreturn s, p", "return s, p", "return p, s"),
        "rust": ("(a0.iter().sum(), a0.iter().product())", "a0.iter().product()", "a0.iter().fold(0, |x, y| x * y)"),
    },
    "longest": {
        "java": (
            "if (a0.isEmpty()) return Optional.empty();\nString best = a0.get(0);\n"
            "for (String s : a0) if (s.codePointCount(0, s.length()) > best.codePointCount(0, best.length()))"
            " best = s;\n"
            "return Optional.of(best);",
            "if (a0.isEmpty()) return Optional.empty();",
            'if (a0.isEmpty()) return Optional.of("");',
        ),
        "go": (
            "if len(a0) == 0 { return nil }\nbest := a0[0]\n"
            "for _, s := range a0 { if len([]rune(s)) > len([]rune(best)) { best = s } }\nreturn &best",
            "len([]rune(s)) > len([]rune(best))",
            "len([]rune(s)) >= len([]rune(best))",
        ),
        "rust": (
            "let most = a0.iter().map(|s| s.chars().count()).max()?;\na0.into_iter().find(|s| s.chars().count()"
            " == most)",
            "s.chars().count() == most",
            "s.len() > most",
        ),
    },
    "rescale_to_unit": {
        "java": (
            "double low = Collections.min(a0), high = Collections.max(a0);\nList<Double> r = new ArrayList<>();\n"
            "for (double x : a0) r.add((x - low) / (high - low));\nreturn r;",
            "/ (high - low)",
            "/ high",
        ),
        "go": (
            "low, high := a0[0], a0[0]\nfor _, x := range a0 { low = math.Min(low, x); high = math.Max(high, x) }\n"
            "r := []float64{}\nfor _, x := range a0 { r = append(r, (x-low)/(high-low)) }\nreturn r",
            "(x-low)/",
            "x/",
        ),
        "rust": (
            "let low = a0.iter().cloned().fold(f64::INFINITY, f64::min);\n"
            "let high = a0.iter().cloned().fold(f64::NEG_INFINITY, f64::max);\n"
            "a0.iter().map(|x| (x - low) / (high - low)).collect()",
            "(x - low) / (high - low)",
            "(x - low) / high",
        ),
    },
    "flip_case": {
        "java": (
            "StringBuilder r = new StringBuilder();\na0.codePoints().forEach(c -> r.appendCodePoint("
            "Character.isUpperCase(c) ? Character.toLowerCase(c) : Character.toUpperCase(c)));\nreturn r.toString();",
            ": Character.toUpperCase(c)",
            ": c",
        ),
        "go": (
            "r := []rune{}\nfor _, c := range a0 { if unicode.IsUpper(c) { r = append(r, unicode.ToLower(c)) }"
            " else { r = append(r, unicode.ToUpper(c)) } }\nreturn string(r)",
            "unicode.ToLower(c)",
            "c",
        ),
        "rust": (
            "a0.chars().flat_map(|c| if c.is_uppercase() { c.to_lowercase().collect::<Vec<_>>() }"
            " else { c.to_uppercase().collect() }).collect()",
            "c.to_lowercase().collect::<Vec<_>>()",
            "vec![c]",
        ),
    },
    "fib": {
        "java": (
            "int a = 0, b = 1;\nfor (int i = 0; i < a0; i++) { int c = a + b; a = b; b = c; }\nreturn a;",
            "a = 0, b",
            "a = 1, b",
        ),
        "go": ("a, b := 0, 1\nfor i := 0; i < a0; i++ { a, b = b, a+b }\nreturn a", "return a", "return b"),
        "rust": (
            "let (mut a, mut b) = (0, 1);\nfor _ in 0..a0 { (a, b) = (b, a + b); }\na",
            "(b, a + b)",
            "(b, b + b)",
        ),
    },
    "triangle_area": {
        "java": (
            "if (a0 + a1 <= a2 || a0 + a2 <= a1 || a1 + a2 <= a0) return -1;\ndouble s = (a0 + a1 + a2) / 2;\n"
            "return Math.round(Math.sqrt(s * (s - a0) * (s - a1) * (s - a2)) * 100) / 100.0;",
            "return -1;",
            "return 0;",
        ),
        "go": (
            "if a0+a1 <= a2 || a0+a2 <= a1 || a1+a2 <= a0 { return -1 }\ns := (a0 + a1 + a2) / 2\n"
            "return math.Round(math.Sqrt(s*(s-a0)*(s-a1)*(s-a2))*100) / 100",
            "math.Round(",
            "math.Floor(",
        ),
        "rust": (
            "if a0 + a1 <= a2 || a0 + a2 <= a1 || a1 + a2 <= a0 { return -1.0; }\nlet s = (a0 + a1 + a2) / 2.0;\n"
            "((s * (s - a0) * (s - a1) * (s - a2)).sqrt() * 100.0).round() / 100.0",
            "/ 2.0",
            "/ 3.0",
        ),
    },
    "get_row": {
        "java": (
            "List<Pair<Integer, Integer>> r = new ArrayList<>();\nfor (int i = 0; i < a0.size(); i++)\n"
            "  for (int j = a0.get(i).size() - 1; j >= 0; j--) if (a0.get(i).get(j) == a1) r.add(Pair.with(i, j));\n"
            "return r;",
            "Pair.with(i, j)",
            "Pair.with(j, i)",
        ),
        "go": (
            "r := [][2]int{}\nfor i, row := range a0 { for j := len(row) - 1; j >= 0; j-- {"
            " if row[j] == a1 { r = append(r, [2]int{i, j}) } } }\nreturn r",
            "j >= 0",
            "j > 0",
        ),
        "rust": (
            "let mut r = Vec::new();\nfor (i, row) in a0.iter().enumerate() { for (j, x) in"
            " row.iter().enumerate().rev() {"
            " if *x == a1 { r.push((i as i64, j as i64)); } } }\nr",
            ".enumerate().rev()",
            ".enumerate()",
        ),
    },
    "next_smallest": {
        "java": (
            "TreeSet<Integer> s = new TreeSet<>(a0);\nif (s.size() < 2) return Optional.empty();\ns.pollFirst();\n"
            "return Optional.of(s.first());",
            "new TreeSet<>(a0);\nif (s.size() < 2)",
            "new TreeSet<>(a0);\nif (a0.size() < 9)",
        ),
        "go": (
            "sort.Ints(a0)\nfor _, x := range a0 { if x > a0[0] { y := x; return &y } }\nreturn nil",
            "x > a0[0]",
            "x >= a0[0]",
        ),
        "rust": (
            "let low = *a0.iter().min()?;\na0.into_iter().filter(|x| *x > low).min()",
            ".filter(|x| *x > low).min()",
            ".filter(|x| *x > low).max()",
        ),
    },
    "check_dict_case": {
        "java": (
            "if (a0.isEmpty()) return false;\nboolean lower = true, upper = true;\nfor (String k : a0.keySet()) {\n"
            "  lower &= k.equals(k.toLowerCase()); upper &= k.equals(k.toUpperCase()); }\nreturn lower || upper;",
            "return lower || upper;",
            "return lower && !upper;",
        ),
        "go": (
            "lower, upper := len(a0) > 0, len(a0) > 0\n"
            "for k := range a0 { lower = lower && k == strings.ToLower(k); upper = upper && k == strings.ToUpper(k) }\n"
            "return lower || upper",
            "len(a0) > 0, len(a0) > 0",
            "true, true",
        ),
        "rust": (
            "!a0.is_empty() && (a0.keys().all(|k| *k == k.to_lowercase()) || a0.keys().all(|k| *k =="
            " k.to_uppercase()))",
            "a0.keys().all(|k| *k == k.to_uppercase())",
            "a0.len() > 9",
        ),
    },
    "by_length": {
        "java": (
            'String[] names = {"One","Two","Three","Four","Five","Six","Seven","Eight","Nine"};\n'
            "List<Integer> s = new ArrayList<>(a0);\ns.sort(Comparator.reverseOrder());\n"
            "List<String> r = new ArrayList<>();\nfor (int x : s) if (x > 0 && x < 10) r.add(names[x - 1]);\nreturn r;",
            "Comparator.reverseOrder()",
            "Comparator.naturalOrder()",
        ),
        "go": (
            'names := []string{"One","Two","Three","Four","Five","Six","Seven","Eight","Nine"}\n'
            "sort.Sort(sort.Reverse(sort.IntSlice(a0)))\nr := []string{}\n"
            "for _, x := range a0 { if x > 0 && x < 10 { r = append(r, names[x-1]) } }\nreturn r",
            "x > 0 &&",
            "x > 1 &&",
        ),
        "rust": (
            'let names = ["One","Two","Three","Four","Five","Six","Seven","Eight","Nine"];\nlet mut s = a0.clone();\n'
            "s.sort(); s.reverse();\n"
            "s.iter().filter(|x| **x > 0 && **x < 10).map(|x| names[*x as usize - 1].to_string()).collect()",
            "s.sort(); s.reverse();",
            "s.sort();",
        ),
    },
    "histogram": {
        "java": (
            'Map<String, Integer> m = new TreeMap<>();\nfor (String w : a0.split(" ")) if (!w.isEmpty())'
            " m.merge(w, 1, Integer::sum);\nint most = 0;\nfor (int n : m.values()) most = Math.max(most, n);\n"
            "int top = most;\nm.values().removeIf(n -> n != top);\nreturn m;",
            "n != top",
            "n > top",
        ),
        "go": (
            "m, most := map[string]int{}, 0\nfor _, w := range strings.Fields(a0) { m[w]++ }\n"
            "for _, n := range m { if n > most { most = n } }\nfor w, n := range m { if n < most { delete(m, w)"
            " } }\nreturn m",
            "n < most",
            "n < 1",
        ),
        "rust": (
            "let mut m = HashMap::new();\nfor w in a0.split_whitespace() { *m.entry(w.to_string()).or_insert(0)"
            " += 1; }\n"
            "let most = m.values().cloned().max().unwrap_or(0);\nm.retain(|_, n| *n == most);\nm",
            "*n == most",
            "*n >= 1",
        ),
    },
    "prod_signs": {
        "java": (
            "if (a0.isEmpty()) return Optional.empty();\nint sum = 0, sign = 1;\n"
            "for (int x : a0) { sum += Math.abs(x); sign *= Integer.signum(x); }\nreturn Optional.of(sum * sign);",
            "Math.abs(x)",
            "x",
        ),
        "go": (
            "if len(a0) == 0 { return nil }\nsum, sign := 0, 1\nfor _, x := range a0 {\n"
            "  if x < 0 { x, sign = -x, -sign }\n  if x == 0 { sign = 0 }\n  sum += x\n}\nsum *= sign\nreturn &sum",
            "if len(a0) == 0 { return nil }",
            "",
        ),
        "rust": (
            "if a0.is_empty() { return None; }\n"
            "Some(a0.iter().map(|x| x.abs()).sum::<i64>() * a0.iter().map(|x| x.signum()).product::<i64>())",
            "x.signum()",
            "x.signum().abs()",
        ),
    },
    "largest_smallest_integers": {
        "java": (
            "Optional<Integer> low = a0.stream().filter(x -> x < 0).max(Integer::compare);\n"
            "return Pair.with(low, a0.stream().filter(x -> x > 0).min(Integer::compare));",
            "x -> x < 0",
            "x -> x <= 0",
        ),
        "go": (
            "var low, high *int\nfor _, x := range a0 {\n  x := x\n  if x < 0 && (low == nil || x > *low) { low"
            " = &x }\n"
            "  if x > 0 && (high == nil || x < *high) { high = &x }\n}\nreturn low, high",
            "x > *low",
            "x < *low",
        ),
        "rust": (
            "(a0.iter().cloned().filter(|x| *x < 0).max(), a0.iter().cloned().filter(|x| *x > 0).min())",
            "filter(|x| *x > 0).min()",
            "filter(|x| *x > 0).max()",
        ),
    },
    "special_factorial": {
        "java": (
            "long r = 1, f = 1;\nfor (long i = 1; i <= a0; i++) { f *= i; r *= f; }\nreturn r;",
            "i <= a0",
            "i < a0",
        ),
        "go": (
            "var r, f int64 = 1, 1\nfor i := int64(1); i <= a0; i++ { f *= i; r *= f }\nreturn r",
            "r *= f",
            "r = f",
        ),
        "rust": ("let (mut r, mut f) = (1, 1);\nfor i in 1..=a0 { f *= i; r *= f; }\nr", "r *= f", "r += f"),
    },
}
