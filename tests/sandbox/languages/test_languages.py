"""Every language that runs here, in the jail: one table of programs, one row a language.

A language whose tools are missing is skipped with the finder's reason.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from sandbox import LANGUAGES, ExecutionStatus, Limits, Sandbox
from sandbox.errors import LanguageUnavailableError
from sandbox.languages.language import Language


class Sample(NamedTuple):
    """What is asked of a language, as its programs.

    Attributes:
        adds: Prints the sum of the whole numbers of its standard input, one a line.
        leaves: Prints ``out`` to standard output and ``err`` to standard error, and ends with 3.
        wrong: Does not compile, or is no program.
        message: What is said of it.
        lines: Prints ``a`` and ``b``; several lines, which are also written with CRLF.
    """

    adds: str
    leaves: str
    wrong: str
    message: str
    lines: str


SAMPLES = {
    "bash": Sample(
        'total=0\nwhile read -r n; do total=$((total + n)); done\necho "$total"\n',
        "echo out; echo err >&2; exit 3",
        "if then\n",
        "syntax error",
        "echo a\nif true; then\n  echo b\nfi\n",
    ),
    "c": Sample(
        '#include <stdio.h>\nint main(void) { long n, t = 0; while (scanf("%ld", &n) == 1) t += n;'
        ' printf("%ld\\n", t); }',
        '#include <stdio.h>\nint main(void) { puts("out"); fputs("err\\n", stderr); return 3; }',
        "int main(void) { return x; }",
        "undeclared",
        '#include <stdio.h>\nint main(void)\n{\n  puts("a");\n  puts("b");\n}\n',
    ),
    "cpp": Sample(
        "#include <bits/stdc++.h>\nusing namespace std;\n"
        "int main() { long n, t = 0; while (cin >> n) t += n; cout << t << endl; }\n",
        '#include <iostream>\nint main() { std::cout << "out\\n"; std::cerr << "err\\n"; return 3; }',
        "int main() { std::vector<int> x; }",
        "std",
        '#include <iostream>\nint main()\n{\n  std::cout << R"(a\nb\n)";\n}\n',
    ),
    "go": Sample(
        'package main\nimport "fmt"\nfunc main() {\n\tvar n, t int\n'
        "\tfor { if _, err := fmt.Scan(&n); err != nil { break }; t += n }\n\tfmt.Println(t)\n}\n",
        'package main\nimport ("fmt"; "os")\nfunc main() { fmt.Println("out"); fmt.Fprintln(os.Stderr, "err"); '
        "os.Exit(3) }",
        "package main\nfunc main() { x }",
        "undefined: x",
        'package main\nimport "fmt"\nfunc main() {\n\tfmt.Print(`a\nb\n`)\n}\n',
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
    ),
    "javascript": Sample(
        'const t = require("fs").readFileSync(0, "utf8").trim().split("\\n").map(Number).reduce((a, b) => a + b, 0)\n'
        "console.log(t)\n",
        'console.log("out"); console.error("err"); process.exitCode = 3',
        "const = 1",
        "SyntaxError",
        'console.log("a")\nconsole.log("b")\n',
    ),
    "lua": Sample(
        "local t = 0\nfor line in io.lines() do t = t + math.tointeger(tonumber(line)) end\nprint(t)\n",
        'print("out") io.stderr:write("err\\n") os.exit(3)',
        "local = 1",
        "<name> expected",
        'print("a")\nprint("b")\n',
    ),
    "perl": Sample(
        'my $t = 0;\n$t += $_ while <STDIN>;\nprint "$t\\n";\n',
        'print "out\\n"; print STDERR "err\\n"; exit 3;',
        "my = 1;",
        "syntax error",
        "print <<X;\na\nb\nX\n",
    ),
    "php": Sample(
        '<?php $t = 0; while (($line = fgets(STDIN)) !== false) $t += (int) $line; echo $t, "\\n";',
        'echo "out\\n"; fwrite(STDERR, "err\\n"); exit(3);',
        "<?php $ = 1;",
        "Parse error",
        '<?php\necho "a\\n";\necho "b\\n";\n',
    ),
    "ruby": Sample(
        "puts $stdin.each_line.sum(&:to_i)\n",
        'puts "out"; warn "err"; exit 3',
        "def = 1",
        "syntax error",
        "puts <<~X\n  a\n  b\nX\n",
    ),
    "rust": Sample(
        "use std::io::*;\nfn main() { let mut s = String::new(); stdin().read_to_string(&mut s).unwrap();\n"
        '  println!("{}", s.split_whitespace().map(|n| n.parse::<i64>().unwrap()).sum::<i64>()); }\n',
        'fn main() { println!("out"); eprintln!("err"); std::process::exit(3) }',
        "fn main() { x }",
        "cannot find value",
        'fn main() {\n    print!(\n        "a\nb\n"\n    );\n}\n',
    ),
    "typescript": Sample(
        'import { readFileSync } from "node:fs"\nenum Start { Zero = 0 }\n'
        'let t: number = readFileSync(0, "utf8").trim().split("\\n").map(Number).reduce((a, b) => a + b, Start.Zero)\n'
        "console.log(t)\n",
        'console.log("out" as string); console.error("err"); process.exitCode = 3',
        "const x: = 1",
        "Syntax",
        'console.log("a")\nconsole.log("b")\n',
    ),
}


@pytest.fixture(params=SAMPLES)
def language(request: pytest.FixtureRequest, sandbox: Sandbox) -> Language:
    """Each language of the table that runs here, which its first program shows."""
    chosen = LANGUAGES[request.param]
    try:
        result = sandbox.run(chosen.hello, language=chosen.name)
    except LanguageUnavailableError as missing:
        pytest.skip(str(missing))
    assert (ExecutionStatus.OK, "hello\n", "") == (result.status, result.stdout, result.stderr)
    return chosen


def test_every_language_has_a_row() -> None:
    assert set(LANGUAGES) == set(SAMPLES)


def test_a_program_reads_its_input(language: Language, sandbox: Sandbox) -> None:
    result = sandbox.run(SAMPLES[language.name].adds, stdin="20\n-3\n25\n", language=language.name)
    assert (ExecutionStatus.OK, "42\n", "") == (result.status, result.stdout, result.stderr)


def test_a_program_ends_with_its_code_and_has_two_outputs(language: Language, sandbox: Sandbox) -> None:
    result = sandbox.run(SAMPLES[language.name].leaves, language=language.name)
    assert (ExecutionStatus.NONZERO, 3, "out\n", "err\n") == (
        result.status, result.exit_code, result.stdout, result.stderr
    )  # fmt: skip


def test_a_wrong_program_fails_with_its_compilers_message(language: Language, sandbox: Sandbox) -> None:
    """The result says that it was not the program which failed, where there is a compiler."""
    sample = SAMPLES[language.name]
    result = sandbox.run(sample.wrong, language=language.name)
    assert ExecutionStatus.NONZERO == result.status
    assert sample.message in result.stderr
    assert (language.compile is not None) == str(result.error).startswith("it does not compile: ")


def test_a_runtime_needs_little_memory(language: Language, sandbox: Sandbox) -> None:
    """64 MiB are enough for the first program."""
    limits = Limits(timeout_s=60.0, memory_bytes=64 << 20)
    result = sandbox.run(language.hello, language=language.name, limits=limits)
    assert (ExecutionStatus.OK, "hello\n") == (result.status, result.stdout)


def test_lines_may_end_as_on_windows(language: Language, sandbox: Sandbox) -> None:
    """Neither the ends of lines nor an editor's mark before the source are part of the program."""
    source = "\ufeff" + SAMPLES[language.name].lines.replace("\n", "\r\n")
    result = sandbox.run(source, language=language.name)
    assert (ExecutionStatus.OK, "a\nb\n") == (result.status, result.stdout)
