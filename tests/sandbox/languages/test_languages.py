"""Every language that this machine has: one table of programs, one row a language.

A language whose tools are missing is skipped with the finder's reason.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest
from bare_programs import run_program

from sandbox.languages.catalogue import LANGUAGES
from sandbox.languages.language import Language
from sandbox.languages.toolchains import MissingToolchain, find_toolchain


class Sample(NamedTuple):
    """What is asked of a language, as its programs.

    Attributes:
        adds: Prints the sum of the whole numbers of its standard input, one a line.
        leaves: Prints ``out`` to standard output and ``err`` to standard error, and ends with 3.
        wrong: Does not compile, or is no program.
        message: What is said of it.
        lines: Prints ``a`` and ``b``; several lines, which are also written with CRLF.
        hoards: Takes memory without end.
    """

    adds: str
    leaves: str
    wrong: str
    message: str
    lines: str
    hoards: str


SAMPLES = {
    "bash": Sample(
        'total=0\nwhile read -r n; do total=$((total + n)); done\necho "$total"\n',
        "echo out; echo err >&2; exit 3",
        "if then\n",
        "syntax error",
        "echo a\nif true; then\n  echo b\nfi\n",
        'x=0123456789\nwhile :; do x="$x$x"; done\n',
    ),
    "c": Sample(
        '#include <stdio.h>\nint main(void) { long n, t = 0; while (scanf("%ld", &n) == 1) t += n;'
        ' printf("%ld\\n", t); }',
        '#include <stdio.h>\nint main(void) { puts("out"); fputs("err\\n", stderr); return 3; }',
        "int main(void) { return x; }",
        "undeclared",
        '#include <stdio.h>\nint main(void)\n{\n  puts("a");\n  puts("b");\n}\n',
        "#include <stdlib.h>\n"
        "#include <string.h>\n"
        "int main(void) { for (;;) { char *p = malloc(1 << 20); if (!p) abort(); memset(p, 1, 1 << 20); } }\n",
    ),
    "cpp": Sample(
        "#include <bits/stdc++.h>\nusing namespace std;\n"
        "int main() { long n, t = 0; while (cin >> n) t += n; cout << t << endl; }\n",
        '#include <iostream>\nint main() { std::cout << "out\\n"; std::cerr << "err\\n"; return 3; }',
        "int main() { std::vector<int> x; }",
        "std",
        '#include <iostream>\nint main()\n{\n  std::cout << R"(a\nb\n)";\n}\n',
        "#include <vector>\nint main() { std::vector<std::vector<char>> v; for (;;) v.emplace_back(1 << 20, 1); }\n",
    ),
    "go": Sample(
        'package main\nimport "fmt"\nfunc main() {\n\tvar n, t int\n'
        "\tfor { if _, err := fmt.Scan(&n); err != nil { break }; t += n }\n\tfmt.Println(t)\n}\n",
        'package main\nimport ("fmt"; "os")\nfunc main() { fmt.Println("out"); fmt.Fprintln(os.Stderr, "err"); '
        "os.Exit(3) }",
        "package main\nfunc main() { x }",
        "undefined: x",
        'package main\nimport "fmt"\nfunc main() {\n\tfmt.Print(`a\nb\n`)\n}\n',
        "package main\n"
        "var kept [][]byte\n"
        "func main() { for { b := make([]byte, 1<<20); for i := range b { b[i] = 1 }; kept = append(kept, b) } }\n",
    ),
    "java": Sample(
        "package contest;\nimport java.util.*;\npublic class Solution { public static void main(String[] args) {\n"
        "  long t = 0; Scanner in = new Scanner(System.in);\n"
        "  while (in.hasNextLong()) t += in.nextLong();\n  System.out.println(t); } }\n",
        'class Main { public static void main(String[] a) { System.out.println("out"); System.err.println("err"); '
        "System.exit(3); } }",
        "class Main { public static void main(String[] a) { x; } }",
        "not a statement",
        'public class Main {\n  public static void main(String[] a) {\n    System.out.print("""\n      a\n      b\n'
        '      """);\n  }\n}\n',
        "import java.util.*;\n"
        "class Main { public static void main(String[] a) {\n"
        "  List<byte[]> l = new ArrayList<>(); while (true) l.add(new byte[1 << 20]); } }\n",
    ),
    "javascript": Sample(
        'const t = require("fs").readFileSync(0, "utf8").trim().split("\\n").map(Number).reduce((a, b) => a + b, 0)\n'
        "console.log(t)\n",
        'console.log("out"); console.error("err"); process.exitCode = 3',
        "const = 1",
        "SyntaxError",
        'console.log("a")\nconsole.log("b")\n',
        "const a = []\nfor (;;) a.push(new Array(100000).fill(1.5))\n",
    ),
    "lua": Sample(
        "local t = 0\nfor line in io.lines() do t = t + math.tointeger(tonumber(line)) end\nprint(t)\n",
        'print("out") io.stderr:write("err\\n") os.exit(3)',
        "local = 1",
        "<name> expected",
        'print("a")\nprint("b")\n',
        'local t = {}\nwhile true do t[#t + 1] = string.rep("x" .. #t, 100000) end\n',
    ),
    "perl": Sample(
        'my $t = 0;\n$t += $_ while <STDIN>;\nprint "$t\\n";\n',
        'print "out\\n"; print STDERR "err\\n"; exit 3;',
        "my = 1;",
        "syntax error",
        "print <<X;\na\nb\nX\n",
        'my @a;\npush @a, "x" x 1000000 while 1;\n',
    ),
    "php": Sample(
        '<?php $t = 0; while (($line = fgets(STDIN)) !== false) $t += (int) $line; echo $t, "\\n";',
        'echo "out\\n"; fwrite(STDERR, "err\\n"); exit(3);',
        "<?php $ = 1;",
        "Parse error",
        '<?php\necho "a\\n";\necho "b\\n";\n',
        '<?php $a = []; while (true) $a[] = str_repeat("x", 1000000);\n',
    ),
    "ruby": Sample(
        "puts $stdin.each_line.sum(&:to_i)\n",
        'puts "out"; warn "err"; exit 3',
        "def = 1",
        "syntax error",
        "puts <<~X\n  a\n  b\nX\n",
        'a = []\nloop { a << "x" * 1000000 }\n',
    ),
    "rust": Sample(
        "use std::io::*;\nfn main() { let mut s = String::new(); stdin().read_to_string(&mut s).unwrap();\n"
        '  println!("{}", s.split_whitespace().map(|n| n.parse::<i64>().unwrap()).sum::<i64>()); }\n',
        'fn main() { println!("out"); eprintln!("err"); std::process::exit(3) }',
        "fn main() { x }",
        "cannot find value",
        'fn main() {\n    print!(\n        "a\nb\n"\n    );\n}\n',
        "fn main() { let mut v: Vec<Vec<u8>> = vec![]; loop { v.push(vec![1u8; 1 << 20]); } }\n",
    ),
    "typescript": Sample(
        'import { readFileSync } from "node:fs"\nenum Start { Zero = 0 }\n'
        'let t: number = readFileSync(0, "utf8").trim().split("\\n").map(Number).reduce((a, b) => a + b, Start.Zero)\n'
        "console.log(t)\n",
        'console.log("out" as string); console.error("err"); process.exitCode = 3',
        "const x: = 1",
        "Syntax",
        'console.log("a")\nconsole.log("b")\n',
        "const a: number[][] = []\nfor (;;) a.push(new Array(100000).fill(1.5))\n",
    ),
}


@pytest.fixture(params=SAMPLES)
def language(request: pytest.FixtureRequest) -> Language:
    """Each language of the table whose tools are here."""
    chosen = LANGUAGES[request.param]
    toolchain = find_toolchain(chosen)
    if isinstance(toolchain, MissingToolchain):
        pytest.skip(str(toolchain))
    return chosen


def test_every_language_has_a_row() -> None:
    assert set(LANGUAGES) == set(SAMPLES)


def test_the_first_program_says_hello(language: Language) -> None:
    run = run_program(language, language.hello)
    assert (0, "hello\n", "") == (run.exit_code, run.stdout, run.stderr)


def test_a_program_reads_its_input(language: Language) -> None:
    run = run_program(language, SAMPLES[language.name].adds, "20\n-3\n25\n")
    assert (0, "42\n", "") == (run.exit_code, run.stdout, run.stderr)


def test_a_program_ends_with_its_code_and_has_two_outputs(language: Language) -> None:
    run = run_program(language, SAMPLES[language.name].leaves)
    assert (3, "out\n", "err\n") == (run.exit_code, run.stdout, run.stderr)


def test_a_wrong_program_fails_with_its_compilers_message(language: Language) -> None:
    sample = SAMPLES[language.name]
    run = run_program(language, sample.wrong)
    assert run.exit_code != 0
    assert sample.message in run.stdout + run.stderr  # the go compiler writes to its standard output
    assert run.compiles == (language.compile is None)


def test_a_runtime_starts_in_little_memory_and_says_when_it_is_used_up(language: Language) -> None:
    """64 MiB are enough for the first program, with the bound that the walls set."""
    assert "hello\n" == run_program(language, language.hello, memory_mb=64).stdout
    run = run_program(language, SAMPLES[language.name].hoards, memory_mb=64)
    assert run.exit_code != 0
    assert language.name == "c" or any(text in run.stderr for text in language.memory_texts), run.stderr


@pytest.mark.parametrize("form", ["{0}", "\ufeff{0}"], ids=["plain", "mark"])
def test_lines_may_end_as_on_windows(language: Language, form: str) -> None:
    """An editor's mark before the source and its ends of lines are no part of the program."""
    source = form.format(SAMPLES[language.name].lines.replace("\n", "\r\n"))
    run = run_program(language, source)
    assert (0, "a\nb\n") == (run.exit_code, run.stdout)
