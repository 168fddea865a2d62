"""``rewardkit show --html``: the dashboard's page with a run in it, in which nothing of a completion is markup."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from saved_pages import SavedFile
from small_run import command, told

from rewardkit import Rollout, Runtime, Score, reward
from rewardkit.record.recorder import Recorder

HOSTILE = (
    '</script></pre><script>alert("x")</script><!--<img src=x onerror=alert(1)><svg onload=alert(2)>'
    "<a href='javascript:alert(3)'>a</a><iframe srcdoc='<script>4</script>'></iframe><style>*{display:none}</style>"
    "\x1b[31mred\x00\u202e\u2066\ud800 &lt; aria_label= "
)


@reward(name="<b>odd", default=None)
def odd(completion: str) -> Score | None:
    """Fail, skip or score by the completion."""
    if "fail" in completion:
        raise ValueError(HOSTILE)
    return None if "skip" in completion else Score(float(len(completion) % 7), HOSTILE)


@reward(name="<b>odd")
def later(completion: str) -> float:
    """Take its place."""
    return float(len(completion) % 3)


def _record(run: Path, steps: int = 4, texts: tuple[str, ...] = ("fail", "skip", "good", "better")) -> Path:
    with Recorder(run) as recorder:
        for step in range(steps):
            used = odd if step < 2 else later
            rollouts = [
                Rollout(f"{HOSTILE}{prompt}", f"{text}{HOSTILE}{step * prompt}", {"answer": HOSTILE})
                for prompt in range(3)
                for text in texts
            ]
            with Runtime([used], lane="inline") as runtime:
                batch = runtime.score(rollouts, step=step)
            recorder.record(batch, step=step, epoch=float(step), rewards={"<b>odd": used}, num_generations=len(texts))
            recorder.metrics(step + 1, {"loss": float("nan") if step == 1 else 0.5, "kl": 0.1})
    return run


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of hostile texts, in whose folder the command runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return _record(Path("runs/one"))


def _saved(*arguments: Any) -> SavedFile:
    code, out, err = command("show", *arguments)
    assert 0 == code, err + out
    return SavedFile(arguments[arguments.index("--html") + 1])


def test_a_saved_page_is_one_file_whose_policy_forbids_every_request(run: Path) -> None:
    """Its script and style run by their hashes alone, and it names no address."""
    page = _saved(run, "--html", "one.html")
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]+)">', page.text)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert "'none'" == rules["default-src"]
    assert re.fullmatch(r"'sha256-[\w+/=]+' 'sha256-[\w+/=]+'", rules["script-src"])
    assert re.fullmatch(r"'sha256-[\w+/=]+'", rules["style-src"])
    assert "data: blob:" == rules["img-src"]
    assert {"script", "style", "link", "meta", "title"} >= set(page.tags) - {"html", "head", "body", "div", "noscript"}
    assert [] == re.findall(r'(?:src|href)="(?!data:)[^"]*"', page.text.partition("<body>")[0].partition("<script>")[0])


def test_no_text_of_a_run_stands_in_the_markup(run: Path) -> None:
    """Whatever a completion says, it is in the packed answers, with control characters as they were."""
    page = _saved(run, "--html", "one.html")
    for text in ("alert(", "onerror", "srcdoc", "\x1b", "\x00", "\u202e"):
        assert (
            text
            not in page.text.partition("<style>")[2].partition("</style>")[2].partition('<script type="module">')[0]
        )
    completion = page.answers("completion")["id=1"][0]["completion"]["text"]
    assert completion == f"fail{HOSTILE}0".replace("\ud800", "\ufffd")


def test_scored_skipped_and_failed_stay_apart(run: Path) -> None:
    """Each outcome of each completion is in the file as the record has it."""
    page = _saved(run, "--html", "one.html")
    scores = [part["scores"][0] for parts in page.answers("completion").values() for part in parts]
    outcomes = [(score["status"], score["cause"]) for score in scores]
    assert (6, 6, 36) == (
        outcomes.count(("failed", "exception")), outcomes.count(("skipped", None)), outcomes.count(("scored", None)),
    )  # fmt: skip
    assert all(score["score"] is None for score in scores if score["status"] != "scored")


def test_a_whole_run_has_every_tab(run: Path) -> None:
    """The curves of all metrics, the diagnosis, the sources of all versions, the entries of the logs."""
    page = _saved(run, "--html", "one.html")
    curves = page.answers("graphs")["split=train"][0]
    assert {"metric/loss", "metric/kl", "total_reward"} <= {graph["key"] for graph in curves["graphs"]}
    assert page.answers("health")[""][0]["diagnosis"]["summary"]
    texts = page.answers("change")[""][0]["texts"]
    assert {"<b>odd@1", "<b>odd@2"} == set(texts)
    assert "def later(" in texts["<b>odd@2"]["source"]
    assert 6 == sum(entry["status"] == "failed" for entry in page.rows("logs", "entries"))
    assert {"prompt=0", "prompt=1", "prompt=2"} == set(page.answers("prompt"))


@pytest.mark.parametrize(
    ("part", "what", "completions", "prompts"),
    [
        (["--step", "1"], "step 1 of train", 12, [0, 1, 2]),
        (["--prompt", "2"], "prompt 2", 16, [2]),
        (["--where", "step=1", "--where", "prompt=1"], "the completions with step=1 and prompt=1", 4, [1]),
        (["--grep", "better.*2$"], "the completions with a match of 'better.*2$'", 2, [1, 2]),
    ],
    ids=["step", "prompt", "where", "grep"],
)  # fmt: skip
def test_a_part_of_a_run_holds_nothing_of_the_rest(
    run: Path, part: list[str], what: str, completions: int, prompts: list[int]
) -> None:
    """Neither a completion, nor a prompt, nor a call of another part; and no health, which is of a whole run."""
    page = _saved(run, "--html", "part.html", *part)
    assert (what, completions, completions) == tuple(page.about[key] for key in ("what", "completions", "of"))
    (sentence,) = page.about["left_out"]
    assert sentence.startswith("A part has no groups by a column, pass rates and Health"), sentence
    numbers = {part["id"] for parts in page.answers("completion").values() for part in parts}
    assert completions == len(numbers)
    assert prompts == sorted(row["index"] for row in page.answers("prompts")[""][0]["rows"])
    assert numbers == {row["id"] for row in page.rows("prompt", "rows")}
    assert numbers == {row["id"] for row in page.rows("table", "rows")}
    assert numbers >= {entry["completion"] for entry in page.rows("logs", "entries")}
    shown = {row["id"] for group in page.rows("completions", "groups") for row in group["rows"]}
    assert (numbers if part[0] == "--step" else set()) == shown
    for epochs in (answer["epochs"] for (answer,) in page.answers("prompt").values()):
        assert all(set(epoch["ids"]) <= numbers and epoch["best"] in numbers for epoch in epochs)
    assert [{}] * 4 == [page.answers(view) for view in ("health", "groups", "columns", "profile")]
    assert {"split=train", "reward=<b>odd&split=train"} == set(page.answers("histogram"))


def test_a_page_that_is_full_says_what_it_leaves_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps to its size, has evenly chosen steps, and tells how to choose others; the terminal says the same."""
    monkeypatch.chdir(tmp_path)
    noise = iter(range(10**6))
    with Runtime([later], lane="inline", record=Path("runs/wide")) as runtime:
        for step in range(32):
            texts = [" ".join(str(hash((next(noise), step))) for _ in range(900)) for _ in range(16)]
            data = [{"level": place % 3} for place in range(len(texts))]
            runtime.score([Rollout(f"{step}-{place // 4}", text, data[place]) for place, text in enumerate(texts)],
                          step=step)  # fmt: skip
    found = told("show", "runs/wide", "--html", "wide.html", "--max-mb", "4")
    page = SavedFile("wide.html")
    assert 4_000_000 > found["bytes"] == Path("wide.html").stat().st_size
    assert 32 * 16 == found["of"] > found["completions"] > 40
    assert page.about["left_out"] == found["left_out"]
    (sentence,) = found["left_out"]
    assert re.match(
        r"It has \d+ of 512 completions of \d+ steps, evenly chosen among 32, because a page of 4 MB", sentence
    )
    assert "--step, --prompt, --where or --grep, or give it more room with --max-mb" in sentence
    steps = [part["step"] for parts in page.answers("completion").values() for part in parts]
    assert [31, 0, 16, 8] == list(dict.fromkeys(steps))[:4]
    assert 16 == steps.count(31)
    (groups,) = page.answers("groups")["column=level&split=train"]  # of all completions
    assert ["0", "1", "2"] == [group["label"] for group in groups["groups"]]
    assert 512 == sum(group["completions"] for group in groups["groups"])
    (histogram,) = page.answers("histogram")["split=train"]
    assert 512 == sum(map(sum, histogram["counts"]))
    assert 32 * 12 == page.answers("profile")["split=train"][0]["matched"]
    whole = told("show", "runs/wide", "--html", "whole.html")
    assert (512, []) == (whole["completions"], whole["left_out"])


def test_a_run_without_steps_or_completions_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that it lacks is an error."""
    monkeypatch.chdir(tmp_path)
    with Recorder("runs/none"):
        pass
    with Runtime([later], lane="inline", record=Path("runs/rows")) as runtime:
        runtime.score([Rollout("a", "b"), Rollout("a", "cc")])
    assert 0 == _saved("runs/none", "--html", "none.html").about["of"]
    assert {"id=1", "id=2"} == set(_saved("runs/rows", "--html", "rows.html").answers("completion"))


def test_a_page_opens_with_the_split_that_is_asked_for(run: Path) -> None:
    """Its graphs are those of the split."""
    assert "/runs/one/graphs?split=eval" == _saved(run, "--html", "one.html", "--split", "eval").about["start"]


def test_where_a_run_lies_does_not_travel(run: Path, tmp_path: Path) -> None:
    """Neither its folder nor a command that names it."""
    page = _saved(run.resolve(), "--html", "one.html")
    assert f"{tmp_path}/runs" not in page.data


def test_a_file_that_is_there_is_replaced_only_when_asked(run: Path) -> None:
    """As ``rewardkit export`` does; the record itself never."""
    Path("one.html").write_text("mine")
    code, _, err = command("show", run, "--html", "one.html")
    assert 2 == code
    assert "--html one.html: is there already; --force replaces it" in err
    assert "mine" == Path("one.html").read_text()
    _saved(run, "--html", "one.html", "--force")
    code, _, err = command("show", run, "--html", run / "record.db", "--force")
    assert 2 == code
    assert "is read; name another" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--html", "a.html", "--step", "1", "--prompt", "1"], "--step and --prompt: give one of them"),
        (["--html", "a.html", "--step", "9"], "no step 9 of train; it has those from 0 to 3"),
        (["--html", "a.html", "--prompt", "9"], "no prompt 9; it has those from 0 to 2"),
        (["--html", "a.html", "--where", "step=9"], "no completion of train has step=9; there is nothing to save"),
        (["--html", "a.html", "--sort", "reward"], "--html and --sort: a page sorts and lists by itself; leave it out"),
        (["--html", "a.html", "--where", "nix<1"], "nothing is called 'nix'"),
        (["--force"], "--force: is about the file of --html; name it"),
        (["--html", "a.html", "--max-mb", "1"], "a page of 1 MB: its code, and the graphs, tables and sources of the"),
        (["--max-mb", "3"], "--max-mb: is about the file of --html; name it"),
        (["--html", "absent/a.html"], "--html absent/a.html: cannot write to absent"),
    ],
)
def test_options_that_do_not_go_together_are_refused_by_name(run: Path, arguments: list[str], message: str) -> None:
    """Nothing is written."""
    code, _, err = command("show", run, *arguments)
    assert 2 == code
    assert message in err
    assert not Path("a.html").exists()


def test_json_tells_what_was_saved(run: Path) -> None:
    """The file with its size, and what it leaves out."""
    code, out, _ = command("show", run, "--html", "one.html", "--json")
    assert 0 == code
    found = json.loads(out)
    assert ("one", "the run", "one.html", 48, 48, []) == tuple(
        found[key] for key in ("run", "what", "file", "completions", "of", "left_out")
    )


def test_what_a_rescoring_changes_is_saved_as_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers of `diff`, and the completions that change most; a limit leaves the others out."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name, body in (("old", "len(completion) % 7"), ("new", "len(completion) % 3")):
        source = (
            f"from rewardkit import reward\n\n\n@reward\ndef odd(completion: str) -> float:\n    return float({body})\n"
        )
        Path(f"{name}.py").write_text(source)
    rows = [{"prompt": f"p{row % 3}", "completion": "x" * row} for row in range(24)]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert 0 == command("score", "old.py:odd", "rows.jsonl", "--record", "runs/two")[0]
    for arguments, message in (
        (["--reward", "old.py:odd"], "--html: this is odd@1, the version that the training used; nothing changes"),
        (["--only-failed", "odd"], "--html and --only-failed without --reward: one version alone has no difference"),
        (["--reward", "new.py:odd", "--name", "else"], "the training has not used 'else'"),
    ):
        code, _, err = command("rescore", "runs/two", *arguments, "--html", "change.html")
        assert (2, True) == (code, message in " ".join(err.split())), err
    assert [] == told("rescore", "runs/two", "--only-failed", "odd")["passes"]
    code, _, err = command("rescore", "runs/two", "--reward", "new.py:odd", "--html", "change.html", "--json")
    assert (0, True) == (code, "wrote change.html" in err), err
    page, difference = SavedFile("change.html"), told("diff", "runs/two", "odd@1", "odd@2")
    (change,) = page.answers("change")[""]
    result = change["job"]["result"]
    for key in ("old", "new", "changed", "sign_flips", "rank_correlation", "groups", "completions"):
        assert (key, difference[key]) == (key, result[key])
    assert "/runs/two/change?reward=odd" == page.about["start"]
    assert {example["id"] for example in result["examples"]} == {
        part["id"] for parts in page.answers("completion").values() for part in parts
    }
    code, _, err = command("rescore", "runs/two", "--reward", "new.py:odd", "--html", "change.html")
    assert (2, True) == (code, "is there already; --force replaces it" in err)


def test_a_difference_of_two_versions_is_saved_as_a_page(run: Path) -> None:
    """It opens with the numbers, and has the completions that change most and no others."""
    code, out, err = command("diff", run, "<b>odd@1", "<b>odd@2", "--examples", "2", "--html", "change.html", "--json")
    assert 0 == code, err
    page, told_result = SavedFile("change.html"), json.loads(out)
    (change,) = page.answers("change")[""]
    assert "/runs/one/change?reward=%3Cb%3Eodd" == page.about["start"]
    assert ("try", "done") == (change["job"]["kind"], change["job"]["state"])
    assert told_result["old"]["mean"] == change["job"]["result"]["old"]["mean"]
    numbers = {part["id"] for parts in page.answers("completion").values() for part in parts}
    assert {example["id"] for example in change["job"]["result"]["examples"]} == numbers
    assert {} == page.answers("health")
    code, _, err = command("diff", run, "<b>odd@1", "<b>odd@2", "--html", "change.html")
    assert (2, True) == (code, "is there already; --force replaces it" in err)
    code, _, err = command("diff", "a.py:b", "a.py:c", "--data", "rows.jsonl", "--html", "other.html")
    assert (2, True) == (code, "--html and --data: a page is of a run" in err)
