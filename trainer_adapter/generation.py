"""How TRL's GRPOTrainer generates, seen from outside: which completions have ended, and how they reach rewards.

transformers tells of each token through a ``StoppingCriteria``, and vLLM's engine, where it runs in the trainer's own
process, of each request that ends. vLLM on a server, and transformers' continuous batching, return all completions at
once. What is read here are names of TRL 1.16 and of vLLM's ``LLM``; this module imports transformers and TRL late.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

Finished: TypeAlias = Callable[[Mapping[int, list[int]]], None]
"""Takes the token ids of completions that have ended, by the place of their prompt."""


def completions_of(trainer: Any, prompts: Sequence[Any], prompt_ids: Sequence[Any], ids: Sequence[Any]) -> list[Any]:
    """Return completions in the form in which TRL hands them to rewards: a text each, or a list of messages."""
    from trl.chat_template_utils import parse_response
    from trl.data_utils import is_conversational

    if not is_conversational({"prompt": prompts[0]}):
        texts: list[Any] = trainer.processing_class.batch_decode(ids, skip_special_tokens=True)
        return texts
    tokenizer = trainer._tokenizer
    if getattr(tokenizer, "response_template", None) is None and getattr(tokenizer, "response_schema", None) is None:
        contents = trainer.processing_class.batch_decode(ids, skip_special_tokens=True)
        return [[{"role": "assistant", "content": content}] for content in contents]
    return [
        [parse_response(tokenizer, own, prefix=prefix, tools=trainer.tools)]
        for own, prefix in zip(ids, prompt_ids, strict=True)
    ]


@contextlib.contextmanager
def watched(trainer: Any, finished: Finished) -> Iterator[None]:
    """Tell of each completion that ends while the trainer generates in this context, where its generation lets us."""
    if trainer.use_vllm:
        engine = getattr(getattr(trainer.vllm_generation, "llm", None), "llm_engine", None)
        if engine is None or getattr(trainer.vllm_generation, "tensor_parallel_size", 1) > 1:
            yield
            return
        with _watched_engine(engine, finished):
            yield
    elif getattr(trainer, "use_transformers_continuous_batching", False):
        yield
    else:
        with _watched_model(trainer, finished):
            yield


@contextlib.contextmanager
def _watched_model(trainer: Any, finished: Finished) -> Iterator[None]:
    """Tell of rows whose last token ends a completion, after each token of transformers' generation."""
    import torch
    from transformers import StoppingCriteria, StoppingCriteriaList

    class EndedRows(StoppingCriteria):
        """Stops nothing; it looks at the last tokens."""

        def __init__(self, prompt_length: int) -> None:
            self._prompt_length = prompt_length
            self._ended: set[int] = set()

        def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
            ends = torch.tensor(trainer.eos_token_ids, device=input_ids.device)
            places = torch.isin(input_ids[:, -1], ends).nonzero().flatten().tolist()
            rows = [row for row in places if row not in self._ended]
            if rows:
                self._ended.update(rows)
                ids = input_ids[rows, self._prompt_length :].tolist()
                finished(dict(zip(rows, ids, strict=True)))
            return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)

    model = trainer.accelerator.unwrap_model(trainer.model_wrapped)
    generate = model.generate

    def generate_watched(*arguments: Any, **keywords: Any) -> Any:
        ended = EndedRows(keywords["input_ids"].shape[1])
        criteria = StoppingCriteriaList([*(keywords.pop("stopping_criteria", None) or ()), ended])
        return generate(*arguments, stopping_criteria=criteria, **keywords)

    with _replaced(model, generate=generate_watched):
        yield


@contextlib.contextmanager
def _watched_engine(engine: Any, finished: Finished) -> Iterator[None]:
    """Tell of requests that end in a step of vLLM's engine; TRL makes one for each completion, in their order."""
    add_request, step = engine.add_request, engine.step
    places: dict[str, int] = {}

    def add_watched(request_id: Any, *arguments: Any, **keywords: Any) -> Any:
        places[str(request_id)] = len(places)
        return add_request(request_id, *arguments, **keywords)

    def step_watched() -> Any:
        outputs = step()
        ended = [output for output in outputs if output.finished and str(output.request_id) in places]
        if ended:
            finished({places[str(output.request_id)]: list(output.outputs[0].token_ids) for output in ended})
        return outputs

    with _replaced(engine, add_request=add_watched, step=step_watched):
        yield


@contextlib.contextmanager
def _replaced(target: Any, **methods: Callable[..., Any]) -> Iterator[None]:
    """Give one object other methods in this context, and then those that it had."""
    before = {name: vars(target)[name] for name in methods if name in vars(target)}
    try:
        for name, method in methods.items():
            setattr(target, name, method)
        yield
    finally:
        for name in methods:
            if name in before:
                setattr(target, name, before[name])
            else:
                delattr(target, name)
