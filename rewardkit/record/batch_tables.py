"""What takes several statements of a record: the prompts of a batch, and what is taken away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rewardkit.record.batch_rows import BatchRows
from rewardkit.record.number_blocks import NumberBlock, with_advantages
from rewardkit.record.store import RecordConnection
from rewardkit.record.texts import Packed, Texts, digest_of, pack_all

_MOST_ASKED = 500  # Prompts that are asked for in one query


class BatchPrompts(NamedTuple):
    """The prompts of a batch: the digest of each completion's, and what is to be stored of those not seen before."""

    of_rows: Sequence[int]
    new: Mapping[int, tuple[str, str]]  # Prompt and columns as text, by digest
    texts: Packed


def prompt_texts(connection: RecordConnection, rows: BatchRows) -> BatchPrompts:
    """Return the prompts of a batch, those that may be new with their texts compressed."""
    pairs = list(zip(rows.prompts, rows.columns, strict=True))
    digests = {pair: digest_of("\x00".join(pair)) for pair in dict.fromkeys(pairs)}
    numbers = _known_prompts(connection, list(digests.values()))
    new = {digest: pair for pair, digest in digests.items() if digest not in numbers}
    packed = pack_all([text for pair in new.values() for text in pair])
    return BatchPrompts([digests[pair] for pair in pairs], new, packed)


def _known_prompts(connection: RecordConnection, digests: Sequence[int]) -> dict[int, int]:
    """Return the cached ids of stored prompts by digest, after a look-up of the digests that the cache lacks."""
    numbers: dict[int, int] = connection.cache.setdefault("prompts", {})
    lacking = [digest for digest in digests if digest not in numbers]
    for start in range(0, len(lacking), _MOST_ASKED):
        chunk = lacking[start : start + _MOST_ASKED]
        query = f"SELECT digest, id FROM prompt WHERE digest IN ({','.join('?' * len(chunk))})"  # noqa: S608 - ours
        numbers.update(connection.tuples(query, chunk))
    return numbers


def prompt_ids(connection: RecordConnection, prompts: BatchPrompts) -> list[int]:
    """Store the prompts that are new; return the id of each completion's prompt, counted from 0."""
    numbers = _known_prompts(connection, list(prompts.new))
    new = {digest: pair for digest, pair in prompts.new.items() if digest not in numbers}
    if new:
        text_ids = dict(zip(prompts.texts.digests, Texts(connection).store(prompts.texts), strict=True))
        (first,) = connection.execute("SELECT coalesce(max(id) + 1, 0) FROM prompt").fetchone()
        rows = []
        for number, (digest, (prompt, columns)) in enumerate(new.items(), first):
            numbers[digest] = number
            rows.append((number, digest, text_ids[digest_of(prompt)], text_ids[digest_of(columns)]))
        connection.insert_all("prompt", rows)
    return [numbers[digest] for digest in prompts.of_rows]


def change_advantages(connection: RecordConnection, batch: int, advantages: Sequence[float | None]) -> None:
    """Write other advantages into the block of a batch's numbers, where it has one; the rows have them already."""
    for (body,) in connection.tuples("SELECT body FROM numbers WHERE batch = ?", (batch,)):
        block = with_advantages(NumberBlock.of(bytes(body)), advantages)
        connection.change_all("UPDATE numbers SET body = ? WHERE batch = ?", [(block, batch)])


def rewind(connection: RecordConnection, step: int, before: float, last: int) -> None:
    """Delete what a resumed run will do again: all from ``step`` on that was scored ``before`` (seconds since 1970).

    Batches up to the number ``last`` count as scored before it, whatever clock their times are of.
    """
    done_again = "(split = 'train' AND step >= :step) OR (split != 'train' AND step > :step)"
    batches = f"SELECT id FROM batch WHERE (scored < :before OR id <= :last) AND ({done_again})"  # noqa: S608 - words of ours
    completions = f"SELECT id FROM completion WHERE batch IN ({batches})"  # noqa: S608 - words of ours
    for table, column, ids in (
        ("said", "completion", completions),
        ("rescored", "completion", completions),
        ("completion", "batch", batches),
        ("summary", "batch", batches),
        ("numbers", "batch", batches),
        ("batch", "id", batches),
    ):
        statement = f"DELETE FROM {table} WHERE {column} IN ({ids})"  # noqa: S608 - words of ours
        connection.execute(statement, {"step": step, "before": before, "last": last})
    connection.execute("DELETE FROM metric WHERE step > ?", (step,))  # the trainer logs a step after it, as one more
    connection.execute("DELETE FROM event WHERE kind = 'flag' AND step >= ? AND time < ?", (step, before))
