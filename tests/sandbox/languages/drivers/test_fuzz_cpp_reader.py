"""The C++ reader of JSON under sanitizers: no line makes it touch memory that is not its own, or overflow.

The reader stands in the tester, where it reads what completions write.
"""

import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sandbox.languages.drivers import runtime_text

_HARNESS = """#include <bits/stdc++.h>
#include "rk.hpp"
using namespace std;
using namespace rewardkit_driver;
template <class T> void read_and_write(const Value& value) {
    try {
        string line;
        Codec<T>::write(line, Codec<T>::read(value));
        Reader(line).whole();
    } catch (const Mismatch&) {
    }
}
int main() {
    Lines lines(0, 1);
    string line;
    while (lines.next(line)) {
        try {
            Value value = Reader(line).whole();
            read_and_write<int>(value); read_and_write<unsigned long long>(value); read_and_write<signed char>(value);
            read_and_write<double>(value); read_and_write<float>(value); read_and_write<char>(value);
            read_and_write<bool>(value); read_and_write<string>(value); read_and_write<vector<vector<int>>>(value);
            read_and_write<map<string, vector<double>>>(value); read_and_write<unordered_map<long, string>>(value);
            read_and_write<set<int>>(value); read_and_write<tuple<int, string, optional<bool>>>(value);
            read_and_write<array<int, 2>>(value); read_and_write<vector<bool>>(value);
            lines.put("value");
        } catch (const NotJson&) {
            lines.put("none");
        }
    }
}
"""
_SANITIZED = ("-std=gnu++17", "-w", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
_BATCH = 200
FULL_S = 20 * 60.0

_TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda trees: (
        st.lists(trees, max_size=6)
        | st.dictionaries(st.sampled_from(["$m", "$o", "$s", "$i", "$f", "$u", "v", "a"]), trees, max_size=2)
    ),
    max_leaves=30,
)
_TOKENS = st.lists(
    st.sampled_from(
        [*(bytes([byte]) for byte in b'{}[],:"\\ \t\r0129-+.eEtfnux/\x00\x80\xff'), b"true", b"null", b"\\ud83d\\ude00",
         b"\\u", b"1e999", b"9" * 30, b'{"$m":[[', b'{"$i":"', b'{"$f":"NaN"}', b"[" * 199, b"[" * 250, b"]" * 199]
    ),
    max_size=40,
).map(b"".join)  # fmt: skip
_LINES = st.binary() | _TOKENS | st.builds(lambda tree: json.dumps(tree).encode(), _TREES)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory, full: bool) -> Path:
    """The reader, built with sanitizers; optimized, which takes twice as long, where it reads for long."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not on this machine")
    directory = tmp_path_factory.mktemp("reader")
    (directory / "rk.hpp").write_text(runtime_text("rk.hpp"))
    (directory / "main.cpp").write_text(_HARNESS)
    speed = ("-O1", "-g") if full else ("-O0",)
    subprocess.run([compiler, *speed, *_SANITIZED, "-o", "reader", "main.cpp"], cwd=directory, check=True)
    return directory / "reader"


def _verdicts(reader: Path, lines: list[bytes]) -> list[bytes]:
    """Return for each line whether it holds a value; a sanitizer ends the reader with another status."""
    text = b"".join(line.replace(b"\n", b" ") + b"\n" for line in lines)
    result = subprocess.run([reader], input=text, capture_output=True, check=False)
    assert (0, b"") == (result.returncode, result.stderr)
    return result.stdout.split()


@pytest.mark.fuzz
def test_no_line_harms_the_reader(reader: Path, full: bool):
    """Bytes, tokens in any order and trees are read or refused; in full for 20 minutes."""
    deadline = time.monotonic() + (FULL_S if full else 0.0)

    @settings(
        max_examples=200 if full else 20,
        phases=[Phase.generate],
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(_LINES, min_size=1, max_size=_BATCH))
    def examine(lines: list[bytes]) -> None:
        assert len(lines) == len(_verdicts(reader, lines))

    examine()
    while time.monotonic() < deadline:  # which draws other lines each time
        examine()


def test_the_reader_reads_what_python_reads(reader: Path):
    """Texts that Python takes for JSON, nested within the bound, hold a value."""
    values = [{"v": [1, -2.5e-3, "\U0001f600\ud83d\x00", None, True, {"$m": [[[], {}]]}]}, [[]], "", 0, "\ud800\\u0041"]
    deep = b"[" * 200 + b"]" * 200
    lines = [*(json.dumps(value).encode() for value in values), b" [ 1 , 2 ]\t", deep]
    bad = [
        b"",
        b"[",
        b"[1,]",
        b'{"a"}',
        b'{"a":1,}',
        b"{1:2}",
        b"tru",
        b"[1]2",
        b'"\\x"',
        b'"\\u12"',
        b"[[" + deep + b"]]",
    ]
    assert [b"value"] * len(lines) + [b"none"] * len(bad) == _verdicts(reader, lines + bad)
