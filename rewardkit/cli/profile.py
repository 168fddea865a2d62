"""``rewardkit profile``: how often each prompt of a run is answered rightly, and the prompts to go on with."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from rewardkit.breakdown.data_rows import DataForm, data_form, data_rows
from rewardkit.breakdown.prompt_profile import LAST_GROUPS, PromptProfile, Rates, are_questions, prompt_profile
from rewardkit.breakdown.run_scores import Scores, Tick, measure
from rewardkit.cli.arguments import AsJson, Split, option
from rewardkit.cli.exits import finish
from rewardkit.cli.group_by import read_scores
from rewardkit.cli.output import check_new, write_rows
from rewardkit.cli.progress import told_progress
from rewardkit.cli.render import ENDLESS, NONE, Screen, align, number, one_line, screen
from rewardkit.cli.run_argument import RunPlace
from rewardkit.errors import ConfigError, RecordError
from rewardkit.record.places import run_path
from rewardkit.record.table import Mask, Whole
from rewardkit.replay.recorded_run import Run
from rewardkit.runtime.row_names import id_column
from rewardkit.shown.text import counted, shortened

_ID_CHARS = 24  # of an id in the list
_LISTED = 20  # Prompts that are listed off --json unless told
_BAR = 30
_KINDS = {
    "never_right": "never right", "in_between": "in between", "always_right": "always right",
    "unknown": "no pass rate",
}  # fmt: skip
_RATE_HEAD = ("rate", "95 % interval", "right", "groups", "skipped", "failed", "mean")
_CHANGE_HEAD = ("change", "95 % interval", "right at first", "at last", "groups", "mean")
_BINS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)


def profile_command(
    run: RunPlace,
    keep: Annotated[str | None, option("Choose the prompts with a pass rate in this range.", "0.1..0.9")] = None,
    drop: Annotated[str | None, option("Choose the prompts without a pass rate in this range.", "1..1")] = None,
    out: Annotated[Path | None, option("Write the chosen prompts to this file, as a data set.", "FILE.jsonl")] = None,
    force: Annotated[bool, option("Replace the file of --out if it is there.", None, "--force")] = False,
    reward: Annotated[str | None, option("The reward that verifies, instead of the weighted sum.", "NAME")] = None,
    pass_at: Annotated[
        float | None, option("A completion is right with at least this; by default above half.", "SCORE")
    ] = None,
    last: Annotated[int, option("The groups of each prompt that count, the last ones.", "K", min=1)] = LAST_GROUPS,
    where: Annotated[list[str] | None, option("Only completions that fit, as in show.", "step>=100")] = None,
    by: Annotated[
        Literal["row", "question"] | None,
        option("Rows of one text are one question, or each a prompt; a scored file has questions."),
    ] = None,
    split: Split = "train",
    sort: Annotated[
        Literal["rate", "change"] | None, option("List the lowest pass rates first, or the prompts that got worst.")
    ] = None,
    limit: Annotated[int | None, option("List at most so many prompts.", "N", min=0)] = None,
    as_json: AsJson = False,
) -> None:
    """Show how often each prompt of a recorded RUN is answered rightly, and write the prompts to go on with.

    Each prompt's pass rate is of its last groups, with a 95 % Wilson interval. A completion passes by the reward, the
    weighted sum, above half of the weights above 0; name the reward that verifies with --reward, and the score that is
    right with --pass-at. What was skipped or failed counts neither as right nor as wrong, and is counted by itself.

    A prompt that is always or never right teaches GRPO nothing. --keep 0.1..0.9 chooses those in between, --drop 1..1
    all but those that are always right; a prompt without a pass rate is in no range. --out writes them with their
    columns of the data, one JSON object a line, which rewardkit, datasets and trainers read as a data set.

    --sort change lists which prompts got worse: the pass rate of the last groups less that of the first ones, of both
    as many as --last says and at most half of all, with Newcombe's 95 % interval.

    Examples:

    [bold]rewardkit profile one --reward correct
    rewardkit profile one --sort change
    rewardkit profile one --keep 0.1..0.9 --out keep.jsonl
    rewardkit profile one --drop 1..1 --last 8 --where 'step>=100' --out harder.jsonl --force[/]
    """
    choice = _Choice.of(keep, drop)
    _check_out(out, choice, force=force)
    if pass_at is not None and not np.isfinite(pass_at):
        raise ConfigError(f"--pass-at {pass_at}: expected a number")
    with Run.open(run_path(run)) as opened:
        if out is not None:
            check_new(out, opened.path.files, "--out", force=force)
        questions, scores = _scores(opened, split, where or [], by)
        profile = prompt_profile(scores, measure(scores, opened.rewards, reward), last=last, pass_at=pass_at)
        chosen = np.ones(len(profile.prompts), np.bool_) if choice is None else choice.mask(profile)
        written = None if out is None else _write(opened, out, profile, chosen, questions, choice)
        finish(
            _as_json(opened, profile, chosen, split, choice, written, _Listing(sort, limit)),
            lambda: _print(opened, profile, chosen, split, choice, written, _Listing(sort or "rate", limit)),
            as_json=as_json,
        )


def _check_out(out: Path | None, choice: _Choice | None, *, force: bool) -> None:
    """Raise ConfigError where options do not go with --out, or need it."""
    if out is not None and choice is None:
        raise ConfigError(f"--out {out}: which prompts? Name their pass rates: --keep 0.1..0.9")
    if out is not None and out.suffix.lower() != ".jsonl":
        raise ConfigError(f"--out {out}: expected a name that ends with .jsonl")
    if force and out is None:
        raise ConfigError("--force: replaces the file of --out; name it")


def _scores(run: Run, split: str, where: Sequence[str], by: str | None) -> tuple[Whole | None, Scores]:
    """Return the completions that fit; by question with the questions' numbers by prompt, else ``None`` with them."""
    scores = read_scores(run, split, where)
    questions = run.questions if are_questions(scores, by) else None
    return questions, scores if questions is None else scores.by_question(questions)


class _Choice(NamedTuple):
    """Which prompts are chosen by their pass rates: those in a range, or those that are not."""

    rates: Rates
    keeps: bool

    @classmethod
    def of(cls, keep: str | None, drop: str | None) -> _Choice | None:
        if keep is not None and drop is not None:
            raise ConfigError(f"--keep {keep} and --drop {drop}: give one of them")
        if keep is not None:
            return cls(Rates.of(keep, "--keep"), keeps=True)
        return None if drop is None else cls(Rates.of(drop, "--drop"), keeps=False)

    @property
    def label(self) -> str:
        return f"{'from' if self.keeps else 'not from'} {self.rates.low:g} to {self.rates.high:g}"

    def mask(self, profile: PromptProfile) -> Mask:
        covered = self.rates.covers(profile.rates)
        return covered if self.keeps else ~covered


class _Listing(NamedTuple):
    """Which of the chosen prompts are listed, and in which order."""

    sort: str | None  # `None` for the order in which they were first seen
    limit: int | None

    def indices(self, profile: PromptProfile, chosen: Mask, most: int | None = None) -> Whole:
        """Return the indices of the listed prompts; what has no value stands last."""
        indices = np.flatnonzero(chosen)
        if self.sort is not None:
            changes = profile.changes
            keys = (
                [profile.rates] if self.sort == "rate" else [changes.values, changes.means_after - changes.means_before]
            )
            indices = indices[np.lexsort([key[indices] for key in reversed(keys)])]
        return indices[: most if self.limit is None else self.limit]


class _Written(NamedTuple):
    """The file that was written."""

    path: Path
    form: DataForm
    rows: int


def _write(
    run: Run, out: Path, profile: PromptProfile, chosen: Mask, questions: Whole | None, choice: _Choice | None
) -> _Written:
    """Write the chosen prompts; RecordError without any, because an empty file is no data set."""
    form = data_form(run, profile.prompts[chosen].tolist(), questions)
    if not form.prompts:
        label = "" if choice is None else f" {choice.label}"
        raise RecordError(f"{run.name}: no prompt has a pass rate{label}; nothing is written to {out}")
    with told_progress("writing prompts") as tick:
        return _Written(out, form, write_rows(out, _ticked(data_rows(run, form), len(form.prompts), tick)))


def _ticked(rows: Iterable[Mapping[str, Any]], total: int, tick: Tick) -> Iterator[Mapping[str, Any]]:
    """Yield rows, and call ``tick`` with how many there were."""
    for done, row in enumerate(rows, 1):
        tick(done, total)
        yield row


def _notes(profile: PromptProfile, written: _Written | None) -> list[str]:
    """Return what has to be known of a profile, and of the file, beside their numbers."""
    notes = []
    changed = int((profile.versions > 1).sum())
    if changed:
        notes.append(
            f"{counted(changed, 'prompt')} with scores of several versions of a reward; --where takes versions"
        )
    if profile.exceeds_scale:
        notes.append("scores go beyond 1: say with --pass-at from where on they are right")
    if written is not None:
        form = written.form
        facts = {
            "with null in columns that only other rows have": form.filled,
            "as messages, because others are: their text is the user's": form.texts_as_messages,
            "left out: their text is empty, which no trainer takes": form.empty,
            "with references in place of pictures: take the pictures from the data that was trained on": form.pictures,
        }
        notes += [f"{counted(count, 'prompt')} {fact}" for fact, count in facts.items() if count]
        if form.own:
            notes.append(f"without {', '.join(form.own)}, which tell completions of one text apart")
    return notes


def _as_json(
    run: Run, profile: PromptProfile, chosen: Mask, split: str, choice: _Choice | None,
    written: _Written | None, listing: _Listing,
) -> dict[str, Any]:  # fmt: skip
    return {
        "name": run.name,
        "split": split,
        "passes": profile.rule,
        "last": profile.last,
        "prompts": len(profile.prompts),
        **profile.counts(),
        "chosen": None if choice is None else int(chosen.sum()),
        "out": None if written is None else str(written.path),
        "written": None if written is None else written.rows,
        "notes": _notes(profile, written),
        "profile": [profile.row(index) for index in listing.indices(profile, chosen).tolist()],
    }


def _print(
    run: Run, profile: PromptProfile, chosen: Mask, split: str, choice: _Choice | None,
    written: _Written | None, listing: _Listing,
) -> None:  # fmt: skip
    """Print the kinds of prompts, their pass rates, and the first of the chosen prompts."""
    console = screen(ENDLESS)
    size = counted(len(profile.prompts), "prompt")
    console.say((run.name, "bold"), f": {size} of {split}, each over its last {counted(profile.last or 0, 'group')}")
    if not len(profile.prompts):
        console.say(f"nothing is recorded of {split} that fits", fit="wrap")
        return
    console.say((f"right: {profile.rule}", "dim"), fit="wrap")
    console.print()
    _print_kinds(profile, console)
    for note in _notes(profile, written):
        console.say(("note: ", "yellow"), note, fit="wrap")
    if choice is not None:
        target = "" if written is None else f"; wrote {counted(written.rows, 'row')} to {written.path}"
        console.say(f"{counted(int(chosen.sum()), 'prompt')} {choice.label}{target}", fit="wrap")
    _print_prompts(run, profile, chosen, listing, console)


def _print_kinds(profile: PromptProfile, console: Screen) -> None:
    counts = profile.counts()
    total = len(profile.prompts)
    edges = list(itertools.pairwise(_BINS))
    between = profile.rates[profile.are_between]
    rows = [("never right", counts["never_right"])]
    rows += [(f"  up to {high:.0%}", int(((between > low) & (between <= high)).sum())) for low, high in edges]
    rows += [("always right", counts["always_right"])]
    rows += [("no pass rate: all skipped or failed", counts["unknown"])] if counts["unknown"] else []
    top = max(count for _, count in rows) or 1
    for line in align(
        (label, f"{count:>7,}", f"{count / total:>4.0%}", "█" * round(_BAR * count / top)) for label, count in rows
    ):
        console.say(line, fit="cut")


def _print_prompts(run: Run, profile: PromptProfile, chosen: Mask, listing: _Listing, console: Screen) -> None:
    order, count = listing.indices(profile, chosen, _LISTED), int(chosen.sum())
    if not len(order):
        return
    is_change = listing.sort == "change"
    if is_change and not (profile.changes.groups[chosen] > 0).any():
        console.say(("note: ", "yellow"), "no prompt was met in two groups, so none has a change", fit="wrap")
    texts = {prompt.index: prompt for prompt in run.prompts_by_index(profile.prompts[order].tolist())}
    columns = _change_cells if is_change else _rate_cells
    id_columns = {prompt.index: id_column(prompt.columns) for prompt in texts.values()}
    head = next(filter(None, id_columns.values()), None)
    rows = [["prompt", *([head] if head else []), *(_CHANGE_HEAD if is_change else _RATE_HEAD), "text"]]
    for index in order.tolist():
        number_of = int(profile.prompts[index])
        name, prompt = id_columns[number_of], texts[number_of]
        row_id = NONE if name is None else shortened(str(prompt.columns[name]), _ID_CHARS)
        ids = [row_id] if head else []
        rows.append([str(number_of), *ids, *columns(profile, index), one_line(prompt.prompt)])
    first_ones = "what got worst first" if is_change else "the lowest pass rates first"
    console.heading(f"{len(order):,} of {count:,}, {first_ones}" if len(order) < count else "prompts")
    first, *others = align(rows)
    console.say((first, "bold"), fit="cut")
    for line in others:
        console.say(line, fit="cut")


def _rate_cells(profile: PromptProfile, index: int) -> list[str]:
    """Return the pass rate of a prompt, as :data:`_RATE_HEAD` names its parts."""
    interval, row = profile.interval(index), profile.row(index)
    is_known = interval.rate is not None
    return [
        f"{interval.rate:.2f}" if is_known else "-",
        f"{interval.low:.2f} to {interval.high:.2f}" if is_known else "-",
        f"{row['passed']} of {row['counted']}",
        f"{row['groups']} of {row['groups_of_all']}",
        str(row["skipped"]),
        str(row["failed"]),
        number(row["mean"]),
    ]


def _change_cells(profile: PromptProfile, index: int) -> list[str]:
    """Return the change of a prompt's pass rate, as :data:`_CHANGE_HEAD` names its parts."""
    changes, row = profile.changes, profile.row(index)
    interval = changes.interval(index)
    is_known = interval.rate is not None
    return [
        f"{interval.rate:+.2f}" if is_known else "-",
        f"{interval.low:+.2f} to {interval.high:+.2f}" if is_known else "-",
        f"{changes.passed_before[index]} of {changes.counted_before[index]}",
        f"{changes.passed_after[index]} of {changes.counted_after[index]}",
        f"{row['change_groups']} and {row['change_groups']} of {row['groups_of_all']}",
        f"{number(row['mean_before'])} to {number(row['mean_after'])}",
    ]
