"""The page that a worker and its parent share: numbers are read whole, whatever order a machine shows writes in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox.workers import page as page_module
from sandbox.workers.page import MAX_CHUNK, Page, page_bytes
from sandbox.workers.wire import anonymous_file, map_shared


@pytest.fixture(params=[True, False], ids=["writes in order", "writes in any order"])
def page(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    """A page of a machine of each kind."""
    monkeypatch.setattr(page_module, "IN_ORDER", request.param)
    shared = Page(map_shared(anonymous_file("page", page_bytes(1)), page_bytes(1), writable=True), 1)
    yield shared
    shared.close()


def test_numbers_come_back_with_their_tickets(page: Page) -> None:
    """Of both halves, from any index on."""
    for half in (0, 1):
        for index in (0, 1, MAX_CHUNK - 1):
            page.answer(half, index, 0.5 + index, half - 1.25, 7 + index)
    assert [(0.5, -1.25, 7), (1.5, -1.25, 8)] == [*page.answers(0, 0, 2)]
    assert [(0.5 + MAX_CHUNK - 1, -0.25, 6 + MAX_CHUNK)] == [*page.answers(1, MAX_CHUNK - 1, 1)]


def test_a_ticket_is_shown_after_its_number_where_writes_may_pass_each_other(page: Page) -> None:
    """The fence stands between them, both where they are written and where they are read."""
    if page_module.IN_ORDER:
        assert page._fence is None
        return
    seen: list[list[tuple[float, float, int]]] = []

    def look() -> None:
        fence, page._fence = page._fence, None
        seen.append([*page.answers(0, 0, 1)])
        page._fence = fence

    page._fence = look  # type: ignore[assignment]
    page.answer(0, 0, 0.5, 0.75, 9)
    assert [[(0.5, 0.75, 0)]] == seen

    def write_next() -> None:
        page._fence = None
        page.answer(0, 1, 0.5, 1.0, 10)

    page._fence = write_next  # type: ignore[assignment]
    assert [0] == [ticket for _, _, ticket in page.answers(0, 1, 1)]  # as it was before the fence: not answered yet


def test_a_fence_can_be_called_again_and_again() -> None:
    """By one thread."""
    fence = page_module.Fence()
    assert [None] * 3 == [fence() for _ in range(3)]
