"""The reward for citing sources by number."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from builtin_rewards.citations import citation

THREE = ["a", "b", "c"]


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        ("Snow is white [1].", 1.0),
        ("Snow [1][2], rain [1, 3], ice [1-3], hail [2\u20133; 1].", 1.0),
        ("[1] says so.", 1.0),
        ("`x[0]` is set [1].", 1.0),
        ("```\ny[7]\n```\nIt is [2].", 1.0),
        ("So it is [1].\n\n[1]: http://x", 1.0),
        ("Snow [1], rain [4].", 0.5),
        ("Snow [1], rain [0].", 0.5),
        ("Snow [1, 2], rain [4], ice [2-9].", 0.5),
        ("Snow [1], rain [3-1].", 0.5),
        ("Snow [2023-01-05] [1].", 0.5),
        ("Snow [1], rain [99999999999999999999].", 0.5),
        ("So it is [1].\n\n[5]: http://x", 0.5),
        # Footnotes and the brackets of search tools.
        ("Snow[^1].", 1.0),
        ("Snow [^1][^3], rain [^2, ^3].\n\n[^1]: A book.\n[^2]: Another one.", 1.0),
        ("Snow [^1], rain [^4].", 0.5),
        ("Snow [^1].\n\n[^7]: A book.", 0.5),
        ("[^1]: A book.", 0.0),
        ("Snow [^a].", 0.0),
        ("It matches [^0-9] and no more.", 0.0),
        ("Snow\u30101\u3011\u3002", 1.0),
        ("Snow\u30101\u2020source\u3011, rain\u30102\u2020L5-L9\u3011\u30103:0\u2020source\u3011.", 1.0),
        ("Snow \uff3b1\uff0c2\uff3d\u3010 3\u30012 \u3011", 1.0),
        ("Snow\u30101\u2020source\u3011, rain\u30108\u2020source\u3011.", 0.5),
        ("\u30101\u3011", 0.0),
        ("Snow\u30101", 0.0),
        # An index in code is no citation.
        ("x[1] = 5", 0.0),
        ("list[1] += 2, and rows[1][2] == 3, and t[1] < 4.", 0.0),
        ("So a[1] + b[2][3] it is, or len(c[1]), or d[1].size.", 0.0),
        ("Take x[4] * 2 as it is [1].", 1.0),
        # A letter may be a unit, or a plan's name.
        ("The tower is 330 m[1].", 1.0),
        ("It weighs 5 g[2] and takes 8 s[1][3].", 1.0),
        ("It weighs 5\u00a0g[2] - at most.", 1.0),
        ("Plan b[1] won.", 1.0),
        ("It is plan b[1].", 1.0),
        ("Snow[1], rain[2][3] and ice[1].", 1.0),
        ("<p>Snow[1]<br>rain[2]</p>", 1.0),
        ("Take vitamin C[1].", 1.0),
        # Thoughts are no answers.
        ("<think>Source [1] says so.</think>Snow is white.", 0.0),
        ("<think>Is it [9]?</think>Snow is white [1].", 1.0),
        ("Snow is white [1].<|im_end|>", 1.0),
        ("[1]: http://x", 0.0),
        ("Snow [4].", 0.0),
        ("[1]", 0.0),
        ("[1][2], [3].\n", 0.0),
        ("Snow (1).", 0.0),
        ("Snow [\uff11].", 0.0),
        ("Snow [\u0661].", 0.0),
        ("Snow [a].", 0.0),
        ("```\n[1]\n```", 0.0),
        ("Snow [1", 0.0),
        ("", 0.0),
        (" \n", 0.0),
        ("\0", 0.0),
        ("\ud800", 0.0),
        ("[" * 100_000, 0.0),
        ("x " + "[1," * 50_000, 0.0),
        ("x [" + "1" * 100_000, 0.0),
        ("x " + "\u30101\u2020" * 50_000, 0.0),
        ("x " + "[^1, " * 50_000, 0.0),
        ("x " + "[1]:" * 50_000, 1.0),
        ("x " + "[1-3]" * 50_000, 1.0),
    ],
)
def test_citations(completion: str, score: float) -> None:
    """At least one source is cited, and each number that is none costs."""
    for sources in (THREE, '["a", "b", "c"]', 3):
        assert score == pytest.approx(citation(completion=completion, sources=sources).value)


@pytest.mark.parametrize("sources", [None, "", "none", [], "[]", 0, -1, True, 2.5], ids=repr)
def test_rows_without_sources_are_skipped(sources: Any) -> None:
    """Nothing can be cited there."""
    assert citation(completion="Snow [1].", sources=sources).value is None


def test_settings_of_citations() -> None:
    """How many sources, all of them, all or nothing; ten thousand at most."""
    assert 0.5 == citation(minimum=2)(completion="Snow [1].", sources=THREE).value
    assert 1.0 == citation(minimum=9)(completion="Snow [1-3].", sources=THREE).value
    assert 2 / 3 == citation(all_sources=True)(completion="Snow [1, 3].", sources=THREE).value
    assert 0.0 == citation(all_or_nothing=True)(completion="Snow [1], [4].", sources=THREE).value
    assert 1.0 == citation(all_sources=True)(completion="Snow [1-5] [4-99] [100-10000].", sources=999_999_999).value
    with pytest.raises(ValueError, match="minimum=0"):
        citation(minimum=0)


def test_it_travels() -> None:
    """With its settings."""
    for made in (citation, citation(minimum=1)):
        assert pickle.loads(pickle.dumps(made))(completion="Snow [1].", sources=THREE).value == 1.0
