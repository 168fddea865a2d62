"""The kinds of OpenAI's graders: their fields, what is checked of them at the start, and the score of each.

What a model is asked is here, and not how it is asked: :mod:`rewardkit.moving.grader` finds who does that. The measures
of text_similarity need the extra ``rewards``.
"""

from __future__ import annotations

import importlib
import unicodedata
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from rewardkit.declare.spec import sandbox_of_process
from rewardkit.declare.text_reward import jail_failure
from rewardkit.errors import ConfigError, RewardDefinitionError, RewardTextError
from rewardkit.moving.grader_formula import Formula
from rewardkit.moving.grader_template import GraderTemplate, in_json

if TYPE_CHECKING:
    from sandbox import ExecutionResult

PYTHON_TIMEOUT_S = 120.0  # Seconds that a python grader may take, as the service allowed
_TYPES = "string_check, text_similarity, python, score_model, label_model or multi"


def similarity(metric: str, text: str, reference: str) -> float:
    """Return how alike two texts are, 0 to 1.

    OpenAI's guide names the measures and not all of their settings. ``fuzzy_match`` is rapidfuzz's ``WRatio`` after
    its ``default_process``, as in the guide's own Python grader; ``bleu`` sacrebleu's of a sentence; ``gleu`` and
    ``meteor`` are nltk's over words; ``rouge_*`` the F-measure of rouge-score, without stemming. Raises ConfigError
    where a package or WordNet, which ``meteor`` reads, is not installed, and ValueError where ``rouge_*``, which reads
    a-z and 0-9 alone, has nothing of the reference to read, or not its letters of another script.
    """
    return min(1.0, max(0.0, float(_MEASURES[metric](text, reference))))


def check_metric(metric: str, where: str) -> None:
    """Raise :class:`RewardDefinitionError` for a measure that is not one of these."""
    if metric == "cosine":
        raise RewardDefinitionError(
            f"{where}: evaluation_metric 'cosine' compares embeddings of a hosted model; use "
            "'fuzzy_match' or 'rouge_l', or a reward model"
        )
    if metric not in _MEASURES:
        raise RewardDefinitionError(f"{where}: evaluation_metric {metric!r}: expected {', '.join(_MEASURES)}")


def load(metric: str) -> None:
    """Load what a measure needs, such as a package that is slow to import; raise ConfigError where it is missing."""
    similarity(metric, "one two", "three four")  # words that are not the same, for which WordNet is asked


def _package(module: str) -> Any:
    """Return a measure's module; raise ConfigError where its package is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as reason:
        raise ConfigError(
            f"a text_similarity grader needs the package {module.partition('.')[0]!r} ({reason}); it comes with the "
            "extra 'rewards'"
        ) from reason


def _fuzzy(text: str, reference: str) -> float:
    process = _package("rapidfuzz.utils").default_process
    return float(_package("rapidfuzz.fuzz").WRatio(text, reference, processor=process)) / 100


def _bleu(text: str, reference: str) -> float:
    return float(_package("sacrebleu").sentence_bleu(text, [reference]).score) / 100


def _gleu(text: str, reference: str) -> float:
    if not text.split() or not reference.split():
        return 0.0
    return float(_package("nltk.translate.gleu_score").sentence_gleu([reference.split()], text.split()))


def _meteor(text: str, reference: str) -> float:
    try:
        return float(_package("nltk.translate.meteor_score").meteor_score([reference.split()], text.split()))
    except LookupError as reason:
        raise ConfigError(
            "evaluation_metric 'meteor' reads WordNet, which is not installed: run nltk.download('wordnet') once, or "
            "take another measure"
        ) from reason


def _is_latin(letter: str) -> bool:
    return letter.isascii() or "LATIN" in unicodedata.name(letter, "")


def _rouge(kind: str) -> Callable[[str, str], float]:
    """Return the measure of a kind of ROUGE."""

    def measure(text: str, reference: str) -> float:
        tokenizer = _package("rouge_score.tokenizers").DefaultTokenizer(False)  # given: the default one is logged
        is_read = tokenizer.tokenize(reference) and all(map(_is_latin, filter(str.isalpha, reference)))
        if reference.strip() and not is_read:
            raise ValueError(
                f"rouge reads the letters a-z and digits alone, and the reference {reference!r:.40} has none of them, "
                "or letters of another script too; take 'fuzzy_match', 'bleu' or 'gleu'"
            )
        scorer = _package("rouge_score.rouge_scorer").RougeScorer([kind], tokenizer=tokenizer)
        return float(scorer.score(reference, text)[kind].fmeasure)

    return measure


_MEASURES: dict[str, Callable[[str, str], float]] = {
    "fuzzy_match": _fuzzy,
    "bleu": _bleu,
    "gleu": _gleu,
    "meteor": _meteor,
    **{f"rouge_{order}": _rouge(f"rouge{order}") for order in range(1, 6)},
    "rouge_l": _rouge("rougeL"),
}


class Spaces(NamedTuple):
    """What a grader reads: the row, and what the model said."""

    item: dict[str, Any]
    sample: dict[str, Any]


class Grader(BaseModel):
    """What all graders have. Fields that only say whether a row passes, as ``pass_threshold``, change no score."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: str
    name: str = ""
    id: str | None = Field(default=None, exclude=True)
    """What the service calls it where it hands out the JSON; it decides nothing."""

    @property
    def templates(self) -> list[GraderTemplate]:
        """Its texts with variables."""
        return []

    @property
    def columns(self) -> list[str]:
        """The columns of the dataset without which it cannot be asked."""
        names = dict.fromkeys(name for template in self.templates for name in template.columns)
        return [name for name in names if name != "messages"]

    @property
    def reads_prompt(self) -> bool:
        """Whether it may read the prompt, which is the dataset's ``prompt`` and ``messages``."""
        return any(name in ("prompt", "messages") for template in self.templates for name in template.columns)

    @property
    def range(self) -> tuple[float, float] | None:
        """The lowest and highest score; ``None`` where it says none."""
        return None

    @property
    def where(self) -> str:
        """What errors call it."""
        return f"grader {self.name!r}" if self.name else f"{self.type} grader"

    def check(self) -> None:
        """Raise :class:`RewardDefinitionError` where a field makes no sense."""
        _ = self.templates

    def load(self) -> None:
        """Load what it needs."""


class _Comparison(Grader):
    """A number, 0 to 1, of two texts."""

    input: str
    reference: str

    @property
    def templates(self) -> list[GraderTemplate]:
        return [GraderTemplate.of(getattr(self, name), f"{self.where}, {name}") for name in ("input", "reference")]

    @property
    def range(self) -> tuple[float, float]:
        return 0.0, 1.0


class StringCheck(_Comparison):
    """1.0 or 0.0: whether ``input`` equals, differs from, or contains ``reference``."""

    operation: str

    def check(self) -> None:
        super().check()
        if self.operation not in ("eq", "ne", "like", "ilike"):
            raise RewardDefinitionError(f"{self.where}: operation {self.operation!r}: expected eq, ne, like or ilike")

    def grade(self, spaces: Spaces) -> float:
        """Return 1.0 where the comparison holds, else 0.0."""
        text, reference = (template.fill(spaces._asdict()) for template in self.templates)
        match self.operation:
            case "eq":
                return float(text == reference)
            case "ne":
                return float(text != reference)
            case "like":
                return float(reference in text)
        return float(reference.lower() in text.lower())


class TextSimilarity(_Comparison):
    """How alike ``input`` and ``reference`` are, 0 to 1."""

    evaluation_metric: str
    pass_threshold: float | None = None

    def check(self) -> None:
        super().check()
        check_metric(self.evaluation_metric, self.where)

    def load(self) -> None:
        load(self.evaluation_metric)

    def grade(self, spaces: Spaces) -> float:
        """Return the similarity."""
        text, reference = (template.fill(spaces._asdict()) for template in self.templates)
        return similarity(self.evaluation_metric, text, reference)


class PythonGrader(Grader):
    """What ``grade(sample, item)`` of its source returns, run in a jail."""

    source: str
    image_tag: str | None = None
    pass_threshold: float | None = None

    @property
    def reads_prompt(self) -> bool:
        return True

    def check(self) -> None:
        try:
            code = compile(self.source, f"<{self.where}>", "exec")
        except (SyntaxError, ValueError) as reason:
            raise RewardDefinitionError(f"{self.where}: its source does not compile: {reason}") from None
        if "grade" not in code.co_names:
            raise RewardDefinitionError(f"{self.where}: its source defines no function grade(sample, item)")

    def grade(self, spaces: Spaces) -> Any:
        """Return what the function returned; raise RewardTextError where it raised, or the jail ended it."""
        from sandbox import Limits

        jail = sandbox_of_process(1)
        limits = Limits(timeout_s=PYTHON_TIMEOUT_S)
        arguments = [in_json(spaces.sample), {name: in_json(value) for name, value in spaces.item.items()}]
        return self._read_result(jail.call(self.source, "grade", [arguments], limits=limits))

    def _read_result(self, result: ExecutionResult) -> Any:
        """Return what the function returned, and print what it printed; RewardTextError where it returned nothing."""
        if result.stdout:
            print(result.stdout, end="")
        value = result.value[0] if result.value else None
        if value is not None and value.ok:
            return value.value
        cause, message = jail_failure(result)
        if "ModuleNotFoundError" in message:
            message += "; the jail has Python's standard library alone, with REWARDKIT_SANDBOX_PROFILE=numpy numpy too"
        raise RewardTextError(f"{self.where}: {message}", cause)


class GraderMessage(BaseModel):
    """A message to a model; its content is a text, or parts of which only texts are read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    role: str
    content: str | dict[str, Any] | list[Any]
    type: str = "message"

    def text(self, where: str) -> str:
        """Return the content as one text; raise RewardDefinitionError where a part of it is an image or a sound."""
        parts = [self.content] if isinstance(self.content, str | dict) else self.content
        texts = [part if isinstance(part, str) else part.get("text") for part in parts if isinstance(part, str | dict)]
        if len(texts) != len(parts) or any(not isinstance(text, str) for text in texts):
            raise RewardDefinitionError(f"{where}: a message has a part that is not text; no images or sounds are sent")
        return "".join(str(text) for text in texts)


class ModelGrader(Grader):
    """What a model says of the messages ``input``."""

    model: str
    input: list[GraderMessage] = Field(min_length=1)
    pass_threshold: float | None = None
    sampling_params: dict[str, Any] | None = None

    @property
    def templates(self) -> list[GraderTemplate]:
        return [GraderTemplate.of(message.text(self.where), f"{self.where}, input") for message in self.input]

    def messages(self, spaces: Spaces) -> list[dict[str, Any]]:
        """Return the messages with their variables filled in."""
        roles = [message.role for message in self.input]
        texts = [template.fill(spaces._asdict()) for template in self.templates]
        return [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]


class ScoreModel(ModelGrader):
    """The number that a model gives, within ``range``."""

    bounds: tuple[float, float] = Field(default=(0.0, 1.0), alias="range")

    @property
    def range(self) -> tuple[float, float]:
        return self.bounds

    @field_validator("bounds", mode="before")
    @classmethod
    def _usual(cls, value: object) -> Any:
        return (0.0, 1.0) if value is None else value  # clients of the service write null for what is not set

    def check(self) -> None:
        super().check()
        if not self.bounds[0] < self.bounds[1]:
            raise RewardDefinitionError(f"{self.where}: range {list(self.bounds)}: expected the lower number first")


class LabelModel(ModelGrader):
    """1.0 where the label that a model gives is one of ``passing_labels``, else 0.0."""

    labels: list[str] = Field(min_length=2)
    passing_labels: list[str]

    @property
    def range(self) -> tuple[float, float]:
        return 0.0, 1.0

    def check(self) -> None:
        super().check()
        unknown = [label for label in self.passing_labels if label not in self.labels]
        if unknown:
            raise RewardDefinitionError(f"{self.where}: passing label {unknown[0]!r} is not one of {self.labels}")


class MultiGrader(Grader):
    """What ``calculate_output`` makes of the scores of ``graders``."""

    graders: dict[str, dict[str, Any]] = Field(min_length=1)
    calculate_output: str
    pass_threshold: float | None = None

    @cached_property
    def parts(self) -> dict[str, Grader]:
        """The graders by name."""
        graders = {name: grader_of(grader, f"{self.where}, graders[{name!r}]") for name, grader in self.graders.items()}
        nested = next((name for name, grader in graders.items() if isinstance(grader, MultiGrader)), None)
        if nested is not None:
            raise RewardDefinitionError(f"{self.where}: {nested!r} is a multi-grader itself; write its parts here")
        return graders

    @property
    def reads_prompt(self) -> bool:
        return any(part.reads_prompt for part in self.parts.values())

    @property
    def formula(self) -> Formula:
        """How the parts' scores become one."""
        return Formula(self.calculate_output)

    @property
    def templates(self) -> list[GraderTemplate]:
        return [template for part in self.parts.values() for template in part.templates]

    def check(self) -> None:
        for part in self.parts.values():
            part.check()
        self.formula.check(self.parts, f"{self.where}, calculate_output")

    def load(self) -> None:
        for part in self.parts.values():
            part.load()


_KINDS: dict[str, type[Grader]] = {
    "string_check": StringCheck,
    "text_similarity": TextSimilarity,
    "python": PythonGrader,
    "score_model": ScoreModel,
    "label_model": LabelModel,
    "multi": MultiGrader,
}


def grader_of(config: object, where: str = "grader") -> Grader:
    """Return a configuration's grader; raise RewardDefinitionError for a wrong type, field, template or formula."""
    if not isinstance(config, Mapping) or "type" not in config:
        raise RewardDefinitionError(f"{where}: expected an object with 'type': {_TYPES}")
    kind = _KINDS.get(config["type"]) if isinstance(config["type"], str) else None
    if kind is None:
        raise RewardDefinitionError(f"{where}: type {config['type']!r}: expected {_TYPES}")
    try:
        grader = kind.model_validate(dict(config))
    except ValidationError as wrong:
        complaint = wrong.errors(include_url=False, include_context=False)[0]
        location = ".".join(map(str, complaint["loc"]))
        raise RewardDefinitionError(f"{where}: {location}: {complaint['msg']}") from None
    grader.check()
    return grader
