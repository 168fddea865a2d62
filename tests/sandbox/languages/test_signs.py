"""Signs of languages: what other languages look like, and what Python does not look like."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sandbox import signs_of

SOURCES = {
    "cpp": ["#include <iostream>\nusing namespace std;", "  std::vector<int> v;", "#include<bits/stdc++.h>\nint x;"],
    "c": ['#include "a.h"\n', "int main(void) { return 0; }"],
    "java": ["public class Main {}", "import java.util.*;", "System.out.println(1);"],
    "csharp": ["using System;\n", "Console.WriteLine(1);"],
    "javascript": ["console.log(1)", "const x = 1;", "let [a] = b", "function f() {}", "xs.map(x => { return x })"],
    "typescript": ["const x: number = 1;", "interface A {\n}"],
    "go": ["package main\n", "func main() {", "fmt.Println(1)"],
    "rust": ["fn main() {}", 'println!("1");', "let mut x = 1;"],
    "ruby": ["puts 1", "gets.to_i", "xs.each do |x|\nend"],
    "php": ["<?php echo 1;"],
    "kotlin": ["fun main() {}"],
    "bash": ["#!/bin/bash\nls", "echo $1"],
    "perl": ["use strict;\n", "my $x = 1;"],
    "lua": ["local x = 1"],
    "sql": ["SELECT a\nFROM b"],
}
PYTHON = [
    "",
    "print(1)\n",
    "from fractions import Fraction\n",
    "import io\nio.StringIO()\n",
    "public = 1\nvariable = public\n",
    "def function(let, var, const):\n    return let\n",
    "x = {'end': 1}\n",
    "def f(a): return lambda b: a >= b\n",
    "class A:\n    end = 1\n",
]


@pytest.mark.parametrize(("name", "source"), [(name, text) for name, texts in SOURCES.items() for text in texts])
def test_another_language_shows(name: str, source: str) -> None:
    assert name == signs_of(source)


@pytest.mark.parametrize("source", PYTHON)
def test_python_shows_no_sign(source: str) -> None:
    assert signs_of(source) is None


@pytest.mark.parametrize(("name", "language"), [("cpp", "cpp"), ("js", "javascript")])
def test_solutions_of_humanevalpack_show_their_language(data: Path, name: str, language: str) -> None:
    lines = (data / "humanevalpack" / f"humanevalpack_{name}.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert {language} == {signs_of(row["declaration"] + row["canonical_solution"]) for row in rows}
