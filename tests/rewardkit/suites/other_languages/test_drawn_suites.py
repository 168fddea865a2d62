"""No change of a test in JavaScript or Go lets right code pass it, in suites of forms that are drawn at random."""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random

import pytest
from suite_forms import (
    GO_FORMS,
    GO_HEAD,
    GO_LIB,
    JAVA_FORMS,
    JAVA_HEAD,
    JAVA_LIB,
    NODE_FORMS,
    NODE_HEAD,
    NODE_LIB,
    written,
)

from rewardkit.suites.runners import RUNNERS, SuiteRunner
from sandbox import Limits, why_not_run

pytest.importorskip("tree_sitter_java", reason="tree-sitter reads suites of other languages")
LIMITS = Limits(timeout_s=60.0, memory_bytes=1 << 30, file_bytes=64 << 20, open_files=256)


def drawn(forms: list[str], count: int, random: Random) -> list[str]:
    """Return some forms, each for a number of its own."""
    chosen = random.sample(forms, count)
    return [written(form, 10 * index + random.randrange(10)) for index, form in enumerate(chosen)]


def changed_tests_fail(runner: SuiteRunner, files: Mapping[str, str], tests: dict[str, str], seed: int) -> None:
    """Assert that right code passes the suite, and in changed ones fails what was changed and nothing else."""
    random = Random(seed)
    data = {name: text.encode() for name, text in files.items()}
    modules = list(tests)
    twins = runner.twins(tests)
    jail = runner.jail(data, None, LIMITS, (), {}, twins)  # type: ignore[arg-type]
    can_change = [test.name for test in twins.tests if test.kind]
    assert can_change
    for round_ in range(4):
        changed = set(random.sample(can_change, len(can_change) * 2 // 3)) if round_ else set()
        twin = twins.draw(changed, random)
        run = jail.run({name: text.encode() for name, text in twin.files.items()}, modules)
        assert not run.error, run.error
        failed = {twins.function_of(name) for name, result in run.results.items() if result.outcome == "failed"}
        texts = "\n".join(re.sub(r"\s+", " ", text) for text in twin.files.values())
        assert changed == failed, (sorted(changed ^ failed), texts)


@pytest.mark.fuzz
@pytest.mark.cases(3)
@pytest.mark.skipif(why_not_run("javascript") is not None, reason="node does not run in the jail here")
@pytest.mark.parametrize("seed", range(40))
def test_right_javascript_fails_what_is_changed(seed: int) -> None:
    """And passes all that is not."""
    random = Random(seed)
    forms = [
        written(form, 10 * index + random.randrange(10)) for index, form in enumerate(random.sample(NODE_FORMS, 12))
    ]
    text = NODE_HEAD + "\n".join(forms)
    changed_tests_fail(RUNNERS["node"], {"lib.js": NODE_LIB}, {"test/a.test.js": text}, seed)


@pytest.mark.fuzz
@pytest.mark.cases(2)
@pytest.mark.skipif(why_not_run("go") is not None, reason="go does not run in the jail here")
@pytest.mark.parametrize("seed", range(20))
def test_right_go_fails_what_is_changed(seed: int) -> None:
    """And passes all that is not."""
    random = Random(seed)
    forms = drawn(GO_FORMS, 10, random)
    files = {"go.mod": "module example.com/lib\n\ngo 1.22\n", "lib.go": GO_LIB}
    changed_tests_fail(RUNNERS["go"], files, {"lib_test.go": GO_HEAD + "\n".join(forms)}, seed)


@pytest.mark.fuzz
@pytest.mark.cases(2)
@pytest.mark.skipif(why_not_run("java") is not None, reason="java does not run in the jail here")
@pytest.mark.parametrize("seed", range(20))
def test_right_java_fails_what_is_changed(seed: int) -> None:
    """And passes all that is not."""
    random = Random(seed)
    text = JAVA_HEAD + "\n".join(drawn(JAVA_FORMS, 10, random)) + "\n}\n"
    files = {"src/main/java/lib/Lib.java": JAVA_LIB}
    changed_tests_fail(RUNNERS["junit"], files, {"src/test/java/lib/LibTest.java": text}, seed)


def kinds_of(runner: str, name: str, text: str) -> dict[str, str]:
    """Return the kinds of a file's tests, by the letters with which their names begin."""
    tests = RUNNERS[runner].twins({name: text}).tests
    return {re.sub(r"Test|\W", "", test.name.rpartition("::")[2])[:1].lower(): test.kind for test in tests}


def test_every_form_is_read_as_it_was_thought() -> None:
    """Which of them can be changed without being told from the text, and which not at all."""
    forms = "\n".join(written(form, n) for n, form in enumerate(NODE_FORMS))
    kinds = kinds_of("node", "a.test.js", NODE_HEAD + forms)
    assert set("prsty") <= {name for name, kind in kinds.items() if kind in ("", "polarity")}
    assert "q" not in kinds  # it is skipped
    assert set("abcefghjklmnuvwx") == {name for name, kind in kinds.items() if kind in ("value", "exception")}
    forms = "\n".join(written(form, n) for n, form in enumerate(GO_FORMS))
    kinds = kinds_of("go", "a_test.go", GO_HEAD + forms)
    assert set("mpr") == {name for name, kind in kinds.items() if not kind}
    assert set("abcdefghikls") == {name for name, kind in kinds.items() if kind == "value"}
    forms = "\n".join(written(form, n) for n, form in enumerate(JAVA_FORMS))
    kinds = kinds_of("junit", "LibTest.java", f"{JAVA_HEAD}{forms}\n}}\n")
    assert {"k": ""} == {name: kind for name, kind in kinds.items() if not kind}
    assert set("abcdefgjmo") == {name for name, kind in kinds.items() if kind == "value"}
    assert ("exception", "polarity", False) == (kinds["h"], kinds["i"], "l" in kinds)
