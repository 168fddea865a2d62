"""The budget: its caps hold over threads, processes and deaths; what is counted, and what happens when it breaks."""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builtin_rewards.endpoint.budget import Budget, Price, Reservation, Spend, most_tokens
from builtin_rewards.endpoint.errors import BudgetSpentError, Fault, JudgeSetupError, JudgeUnavailableError
from builtin_rewards.endpoint.messages import Request, Usage
from builtin_rewards.judge import JudgeCache, LLMJudge
from rewardkit import Runtime
from rewardkit.testing import FakeJudge

_ROOT = Path(__file__).parents[3]
_MOST = Usage(60, 40)
_PRICE = Price(1.0, 10.0)
_BOUND = {"max_tokens": 40}


def _started(program: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=_ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def _printed(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=500)
    assert err == ""
    return out


def _threads(count: int, work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(who,)) for who in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# --- settings


_NO_CAPS = [
    ({}, r"Budget\(\): it caps nothing"),
    *(
        ({name: value}, rf"Budget\({name}={value!r}\)")
        for name in ("usd", "tokens", "requests")
        for value in (0, -1, "5", True, float("nan"), float("inf"))
    ),
    *(({name: 1.5}, "a whole number above 0") for name in ("tokens", "requests")),
]


@pytest.mark.parametrize(("caps", "words"), _NO_CAPS, ids=repr)
def test_a_cap_that_is_none_is_refused(caps: dict[str, Any], words: str) -> None:
    """The message names the cap and the value; a count is a whole number, and there is one at least."""
    with pytest.raises(JudgeSetupError, match=words):
        Budget(**caps)


def test_a_ledger_that_cannot_be_used_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    """By what a runtime calls first, by a first use without one, and where it travels to a worker."""
    budget = Budget(usd=1, ledger=tmp_path)
    for use in (budget.set_up, budget.spent, lambda: pickle.dumps(budget)):
        with pytest.raises(JudgeSetupError, match=r"Budget\(ledger=\.\.\.\): .*name a file in a writable place"):
            use()


@pytest.mark.parametrize("setting", ["budget", "cache"])
def test_a_runtime_refuses_a_file_that_cannot_be_used(tmp_path: Path, setting: str) -> None:
    """When it is made, before its workers start."""
    kept: Any = Budget(requests=1, ledger=tmp_path) if setting == "budget" else JudgeCache(tmp_path)
    judge = LLMJudge("m", template="helpfulness", client=FakeJudge("4"), **{setting: kept})
    with pytest.raises(JudgeSetupError, match="name a file in a writable place"):
        Runtime([judge])


def test_a_cap_in_usd_needs_a_price(tmp_path: Path) -> None:
    """The message names the model and what to set; other caps need none."""
    with pytest.raises(JudgeSetupError, match=r'no price is known for model "m".*prices='):
        Budget(usd=1, ledger=tmp_path / "a.db").check("m", _BOUND, None)
    Budget(usd=1, ledger=tmp_path / "a.db").check("m", _BOUND, _PRICE)
    Budget(tokens=1, ledger=tmp_path / "a.db").check("m", _BOUND, None)


# --- what is counted


def test_what_is_settled_is_counted_by_judge(tmp_path: Path) -> None:
    """Cost, tokens and requests, of each judge and of all; a model without a price has no cost."""
    budget = Budget(usd=1, ledger=tmp_path / "l.db")
    free = Budget(tokens=10_000, ledger=tmp_path / "l.db")
    assert Spend() == budget.spent()
    budget.reserve("a", _MOST, _PRICE).settle(Usage(50, 25))
    budget.reserve("a", _MOST, _PRICE).release()
    budget.reserve("b", _MOST, _PRICE).settle()
    free.reserve("b", _MOST).settle(Usage(10, 10))
    assert {"a": Spend(pytest.approx(0.0003), 75, 1), "b": Spend(pytest.approx(0.00046), 120, 2)} == budget.by_judge()
    assert Spend(pytest.approx(0.00076), 195, 3) == budget.spent()


@pytest.mark.parametrize("usage", [None, Usage(-1, 5), Usage(5, -1)], ids=repr)
def test_usage_that_is_not_known_counts_at_its_most(tmp_path: Path, usage: Usage | None) -> None:
    """A request that was sent may be billed, though no answer came."""
    budget = Budget(tokens=1000, ledger=tmp_path / "l.db")
    budget.reserve("j", _MOST).settle(usage)
    assert Spend(0.0, 100, 1) == budget.spent()


def test_a_ticket_ends_once(tmp_path: Path) -> None:
    """What is said first counts."""
    budget = Budget(tokens=1000, ledger=tmp_path / "l.db")
    ticket = budget.reserve("j", _MOST)
    ticket.settle(Usage(1, 2))
    ticket.settle(Usage(3, 4))
    ticket.release()
    assert Spend(0.0, 3, 1) == budget.spent()


def test_a_ticket_that_is_left_open_counts_at_its_most(tmp_path: Path) -> None:
    """A judgement that is cancelled was sent; one that was said to be nothing is nothing."""
    budget = Budget(tokens=1000, ledger=tmp_path / "l.db")

    def cancelled() -> None:
        with budget.reserve("j", _MOST):
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        cancelled()
    with budget.reserve("j", _MOST) as ticket:
        ticket.release()
    assert Spend(0.0, 100, 1) == budget.spent()


def test_usage_beyond_its_most_is_counted_and_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A server that ignores max_tokens is not hidden."""
    budget = Budget(tokens=10_000, ledger=tmp_path / "l.db")
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            budget.reserve("talkative", _MOST).settle(Usage(60, 400))
    assert 920 == budget.spent().tokens
    (record,) = caplog.records
    assert "talkative" in record.getMessage()


_TEXT = st.text(st.characters(exclude_categories=()), max_size=50)


@given(st.lists(_TEXT, max_size=3))
def test_most_tokens_is_at_least_a_token_a_byte(texts: list[str]) -> None:
    """And never fewer for more text; lone surrogates and NUL included."""
    request = Request("m", tuple({"role": "user", "content": text} for text in texts), {"max_tokens": 7})
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    read, written, cached = most_tokens(request)
    assert size < read <= size + 64 + 20 * len(texts)
    assert (7, 0) == (written, cached)


def test_most_tokens_reads_the_parts_of_a_message() -> None:
    """An image counts what no known model passes, and not the length of its address; texts count their bytes."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 10**6}}
    parts = [{"type": "text", "text": "See:"}, image, image]
    request = Request("m", ({"role": "user", "content": parts},), {"max_tokens": 7})
    assert Usage(64 + 16 + len("userSee:") + 2 * 50_000, 7) == most_tokens(request)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({"max_tokens": 7}, Usage(64, 7), id="max_tokens"),
        pytest.param({"max_completion_tokens": 9}, Usage(64, 9), id="its newer name"),
        pytest.param({"max_tokens": 7, "max_completion_tokens": 5}, Usage(64, 7), id="both, the older one larger"),
        pytest.param({"max_tokens": 7, "max_completion_tokens": 9}, Usage(64, 9), id="both, the newer one larger"),
        pytest.param({"max_tokens": 7, "n": 3}, Usage(64, 21), id="several choices"),
        pytest.param({"max_tokens": 7, "extra_body": {"n": 3}}, Usage(64, 21), id="several choices by extra_body"),
        pytest.param({"extra_body": {"max_tokens": 7}}, Usage(64, 7), id="max_tokens by extra_body"),
        pytest.param({"max_tokens": 7, "extra_body": {"max_tokens": 9}}, Usage(64, 7), id="the one that is sent"),
        pytest.param({"max_tokens": 7, "response_format": {"type": "x" * 88}}, Usage(164, 7), id="schema"),
    ],
)
def test_most_tokens_reads_the_options(options: Any, expected: Usage) -> None:
    """The reply's length limit, once per choice, and the schema that is sent along."""
    assert expected == most_tokens(Request("m", (), options))


@pytest.mark.parametrize(
    "options",
    [{}, {"max_tokens": None}, {"max_tokens": 0}, {"max_tokens": 7, "max_completion_tokens": 0}],
    ids=repr,
)
def test_a_request_without_a_length_limit_has_no_bound(options: Any) -> None:
    """So a budget refuses it."""
    with pytest.raises(JudgeSetupError, match="max_tokens"):
        most_tokens(Request("m", (), options))


# --- the cap


def test_a_request_is_refused_once_a_cap_is_reached(tmp_path: Path) -> None:
    """The error names the cap, what is spent and reserved, and what helps."""
    budget = Budget(tokens=150, ledger=tmp_path / "l.db")
    budget.reserve("j", _MOST).settle(Usage(60, 30))
    budget.reserve("j", _MOST)
    with pytest.raises(BudgetSpentError) as caught:
        budget.reserve("helpful", _MOST)
    assert Fault.BUDGET == caught.value.fault
    assert (
        'judge "helpful" was not asked: the cap tokens=150 of the budget is reached; spent 0.0000 USD, 90 tokens, '
        "1 request, with all in flight at most 0.0000 USD, 190 tokens, 2 requests, and one more may take 0.0000 USD, "
        "55 tokens, 1 request; raise Budget(tokens=150) or lower max_tokens, or give the judge a fallback"
    ) == str(caught.value)


@pytest.mark.parametrize(
    ("caps", "admitted"),
    [
        pytest.param({"usd": 0.001}, 2, id="usd"),
        pytest.param({"tokens": 254}, 2, id="tokens"),
        pytest.param({"tokens": 255}, 3, id="one token more"),
        pytest.param({"requests": 5}, 5, id="requests"),
        pytest.param({"tokens": 54}, 0, id="less than one request"),
        pytest.param({"usd": 5.0, "tokens": 10_000, "requests": 2}, 2, id="the tightest"),
    ],
)
def test_requests_are_let_through_while_the_cap_has_room_for_their_reservation(
    tmp_path: Path, caps: dict[str, Any], admitted: int
) -> None:
    """Each costs its most, 100 tokens, 0.00046 USD, and is expected to cost 55 tokens, 0.000415 USD."""
    budget = Budget(**caps, ledger=tmp_path / "l.db")
    for _ in range(admitted):
        budget.reserve("j", _MOST, _PRICE).settle()
    for _ in range(3):
        with pytest.raises(BudgetSpentError):
            budget.reserve("j", _MOST, _PRICE)


def test_what_is_given_back_can_be_spent(tmp_path: Path) -> None:
    """A request that cost less than its most, or nothing, makes room."""
    budget = Budget(tokens=100, ledger=tmp_path / "l.db")
    ticket = budget.reserve("j", _MOST)
    with pytest.raises(BudgetSpentError):
        budget.reserve("j", _MOST)
    ticket.settle(Usage(10, 10))
    budget.reserve("j", _MOST).release()
    budget.reserve("j", _MOST).settle(Usage(60, 20))
    with pytest.raises(BudgetSpentError):
        budget.reserve("j", _MOST)


_ACTIONS = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 50), st.floats(0, 1), st.integers(0, 4)), min_size=1, max_size=60
)


@settings(max_examples=20)
@given(st.integers(1, 600), _ACTIONS)
def test_the_cap_is_passed_by_what_one_request_costs_beyond_its_reservation(cap: int, actions: list[Any]) -> None:
    """Whatever is let through, settled and released in whatever order; and none is refused that fits."""
    with tempfile.TemporaryDirectory() as folder:
        budget = Budget(tokens=cap, ledger=f"{folder}/l.db")
        open_ones: list[tuple[Reservation, Usage]] = []
        spent = beyond = 0
        for read, written, share, ended in actions:
            most = Usage(read, written)
            expected = -(-read // 4) + written
            bound = spent + sum(sum(usage) for _, usage in open_ones) + expected
            try:
                open_ones.append((budget.reserve("j", most), most))
                beyond = max(beyond, sum(most) - expected)
                assert bound <= cap
            except BudgetSpentError:
                assert bound > cap
            for ticket, usage in open_ones[:ended]:
                real = Usage(int(usage.prompt_tokens * share), int(usage.completion_tokens * share))
                ticket.settle(real)
                spent += sum(real)
            del open_ones[:ended]
            assert spent == budget.spent().tokens <= cap + beyond
        budget._ledger.close()


_MOST_USD, _BEYOND_USD = _PRICE.cost(Usage(399, 99)), _PRICE.cost(Usage(399 - 100, 0))


def test_the_cap_holds_over_threads_at_once(tmp_path: Path) -> None:
    """64 threads that take turns at nothing but the budget."""
    budget = Budget(tokens=20_000, ledger=tmp_path / "l.db")
    through: list[int] = []

    def work(who: int) -> None:
        draw = random.Random(who)
        while budget.spent().tokens <= 20_000 - 225:  # what one is expected to take
            try:
                ticket = budget.reserve("j", Usage(500, 100))
            except BudgetSpentError:
                continue
            through.append(who)
            ticket.settle(Usage(draw.randrange(300, 501), draw.randrange(101)))

    _threads(64, work)
    assert 20_000 - 225 < budget.spent().tokens <= 20_000 + 375
    assert len(through) == budget.spent().requests


_SPENDER = """
import asyncio, pickle, random, sys
from builtin_rewards.endpoint.messages import Usage
from builtin_rewards.endpoint.errors import BudgetSpentError
from builtin_rewards.endpoint.budget import Price
budgets, draw, price = pickle.loads(bytes.fromhex(sys.argv[1])), random.Random(int(sys.argv[2])), Price(1.0, 10.0)
async def one(budget):
    global through
    while True:
        most = Usage(draw.randrange(1, 400), draw.randrange(1, 100))
        try:
            ticket = await budget.reserve_within("judge " + sys.argv[2], most, price, timeout_s=300)
        except BudgetSpentError:
            return
        through += 1
        await asyncio.sleep(draw.random() * 0.004)
        ticket.settle(Usage(draw.randrange(most.prompt_tokens + 1), draw.randrange(most.completion_tokens + 1)))
async def main(budget):
    await asyncio.gather(*(one(budget) for _ in range(64)))
print("ready", flush=True)
input()
for budget in budgets:
    through = 0
    asyncio.run(main(budget))
    print(through)
"""


def test_the_cap_holds_over_processes_with_64_in_flight_each() -> None:
    """Three share two ledgers, of USD and of requests, by their pickles; each ends within a request of its cap."""
    budgets = Budget(usd=0.15), Budget(requests=300)
    pickled = pickle.dumps(budgets).hex()
    processes = [_started(_SPENDER, pickled, str(who)) for who in range(3)]
    for process in processes:
        assert process.stdout is not None
        assert "ready\n" == process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    counts = {f"judge {who}": _printed(process).split() for who, process in enumerate(processes)}
    for place, budget in enumerate(budgets):
        through = {judge: int(count[place]) for judge, count in counts.items() if count[place] != "0"}
        assert through == {judge: spend.requests for judge, spend in budget.by_judge().items()}
        assert sum(through.values()) == budget.spent().requests
    assert 0.15 - _MOST_USD < budgets[0].spent().usd <= 0.15 + _BEYOND_USD
    assert 300 == budgets[1].spent().requests


# --- waiting for room


def test_a_request_waits_for_those_in_flight(tmp_path: Path) -> None:
    """It is let through when one ends for less than its most; those that wait go in the order they came."""
    budget = Budget(tokens=100, ledger=tmp_path / "l.db")
    order: list[int] = []

    async def wait(who: int) -> None:
        ticket = await budget.reserve_within("j", _MOST, None, timeout_s=30)
        order.append(who)
        ticket.settle(Usage(1, 0))

    async def main() -> None:
        ticket = budget.reserve("j", _MOST)
        waiting = [asyncio.create_task(wait(who)) for who in range(5)]
        await asyncio.sleep(0.03)
        assert [] == order
        ticket.settle(Usage(10, 0))
        await asyncio.gather(*waiting)

    asyncio.run(main())
    assert list(range(5)) == order


def test_a_request_does_not_wait_where_all_is_spent(tmp_path: Path) -> None:
    """Nothing in flight could make room."""
    budget = Budget(tokens=100, ledger=tmp_path / "l.db")
    budget.reserve("j", _MOST).settle()
    with pytest.raises(BudgetSpentError):
        asyncio.run(budget.reserve_within("j", _MOST, None, timeout_s=1e9))


def test_a_request_waits_no_longer_than_it_says(tmp_path: Path) -> None:
    """Then it is refused, and reserves nothing."""
    budget = Budget(tokens=100, ledger=tmp_path / "l.db")
    ticket = budget.reserve("j", _MOST)
    with pytest.raises(BudgetSpentError, match=r"0 requests, with all in flight at most [0.]* USD, 100 tokens"):
        asyncio.run(budget.reserve_within("j", _MOST, None, timeout_s=0.05))
    ticket.release()
    budget.reserve("j", _MOST).settle()
    assert 1 == budget.spent().requests


# --- processes that come and go


def test_a_kept_ledger_goes_on_counting(tmp_path: Path) -> None:
    """A resumed run has what was left; it may be given a higher cap."""
    Budget(tokens=100, ledger=tmp_path / "l.db").reserve("j", _MOST).settle()
    with pytest.raises(BudgetSpentError):
        Budget(tokens=100, ledger=tmp_path / "l.db").reserve("j", _MOST)
    Budget(tokens=200, ledger=tmp_path / "l.db").reserve("j", _MOST)


def test_two_budgets_without_a_ledger_count_apart() -> None:
    """Each has its own."""
    one, other = Budget(requests=1), Budget(requests=1)
    one.reserve("j", _MOST)
    other.reserve("j", _MOST)
    assert one._ledger.path != other._ledger.path


_DIES = """
import os, pickle, signal, sys
from builtin_rewards.endpoint.messages import Usage
budget = pickle.loads(bytes.fromhex(sys.argv[1]))
for number in range(3):
    ticket = budget.reserve("j", Usage(60, 40))
ticket.settle(Usage(1, 1))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_requests_of_a_process_that_died_make_no_room(tmp_path: Path) -> None:
    """They were perhaps billed: they stay in flight at their most, and after an hour they are spent."""
    budget = Budget(tokens=256, ledger=tmp_path / "l.db")
    assert "" == _printed(_started(_DIES, pickle.dumps(budget).hex()))
    for change, words in (
        (None, "spent 0.0000 USD, 2 tokens, 1 request, with all in flight at most 0.0000 USD, 202 tokens"),
        (1, "spent 0.0000 USD, 202 tokens, 3 requests"),
    ):
        if change is not None:
            budget._ledger.rows("UPDATE amounts SET at = ? WHERE at > 0", (change,))
        with pytest.raises(BudgetSpentError, match=words):
            budget.reserve("j", _MOST)
    assert Spend(0.0, 202, 3) == budget.spent()


@pytest.mark.parametrize("ended", ["settled", "released"])
def test_a_request_counted_as_lost_is_put_right_when_it_ends(tmp_path: Path, ended: str) -> None:
    """Whoever thought it lost was wrong; the sums are as if it had never been."""
    budget = Budget(tokens=1000, ledger=tmp_path / "l.db")
    ticket = budget.reserve("j", _MOST)
    budget._ledger.rows("UPDATE amounts SET at = 1 WHERE at > 0")
    assert Spend(0.0, 100, 1) == budget.spent()
    if ended == "settled":
        ticket.settle(Usage(7, 8))
    else:
        ticket.release()
    assert (Spend(0.0, 15, 1) if ended == "settled" else Spend()) == budget.spent()


_MAKES = """
import os, pathlib, pickle
from builtin_rewards.endpoint.budget import Budget
from builtin_rewards.endpoint.messages import Usage
budget = Budget(requests=9)
for _ in range(2):
    pid = os.fork()
    if not pid:
        budget.reserve("j", Usage(1, 1)).settle()
        raise SystemExit(0)
    os.waitpid(pid, 0)
path = budget._ledger.path
print(path, path.exists(), budget.spent().requests, oct(path.parent.stat().st_mode))
"""


def test_a_private_ledger_ends_with_the_process_that_made_it() -> None:
    """Not with a child it forked, before its first use or after; both count in it, and nothing is left of it."""
    path, there, requests, mode = _printed(_started(_MAKES)).split()
    assert ("True", "2", "0o40700") == (there, requests, mode)
    assert not Path(path).parent.exists()


def test_a_private_ledger_of_a_killed_process_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next process of the same user that makes one takes it away, and none of those that live."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    killed = f"import os, tempfile\nfrom {Budget.__module__} import Budget\ntempfile.tempdir = {str(tmp_path)!r}\n"
    killed += "Budget(requests=3).set_up()\nos.kill(os.getpid(), 9)"
    assert -9 == subprocess.run([sys.executable, "-c", killed]).returncode
    (left,) = tmp_path.iterdir()
    ours = Budget(requests=3), Budget(requests=3)
    for budget in ours:
        budget.set_up()
    assert 2 == len(list(tmp_path.iterdir()))
    assert not left.exists()


def test_it_pickles_as_its_settings(tmp_path: Path) -> None:
    """The copy counts in the same ledger, though that was named from another folder."""
    budget = Budget(usd=1.5, tokens=1000, ledger=os.path.relpath(tmp_path / "l.db"))
    copy = pickle.loads(pickle.dumps(budget))
    assert budget == copy
    copy.reserve("j", _MOST, _PRICE).settle()
    assert 1 == budget.spent().requests


# --- a ledger that breaks


def _break_by_removal(budget: Budget) -> None:
    budget._ledger.close()
    budget._ledger.path.unlink()


def _break_by_garbage(budget: Budget) -> None:
    budget._ledger.close()
    budget._ledger.path.write_bytes(b"garbage " * 2000)


@pytest.mark.parametrize("breaks", [_break_by_removal, _break_by_garbage])
def test_a_broken_ledger_lets_nothing_through(tmp_path: Path, breaks: Callable[[Budget], None]) -> None:
    """It fails closed, and says that no call is made and what helps."""
    budget = Budget(tokens=1000, ledger=tmp_path / "l.db")
    budget.set_up()
    breaks(budget)
    for _ in range(2):
        with pytest.raises(JudgeUnavailableError, match=r"so no call is made: free the disk") as caught:
            budget.reserve("j", _MOST)
        assert Fault.BUDGET == caught.value.fault
    with pytest.raises(JudgeUnavailableError):
        budget.spent()


def test_a_ticket_on_a_broken_ledger_keeps_its_reply(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The reply was had; the warning says that it counts at its most."""
    budget = Budget(tokens=1000, ledger=tmp_path / "l.db")
    ticket = budget.reserve("j", _MOST)
    _break_by_garbage(budget)
    with caplog.at_level(logging.WARNING):
        ticket.settle(Usage(1, 1))
    (record,) = caplog.records
    assert "counts at its most" in record.getMessage()


_FULL = """
import pickle, resource, sys
from builtin_rewards.endpoint.messages import Usage
from builtin_rewards.endpoint.errors import JudgeUnavailableError
budget = pickle.loads(bytes.fromhex(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
through = 0
try:
    while through < 10_000:
        budget.reserve("j", Usage(1, 1))
        through += 1
except JudgeUnavailableError as error:
    print(through, type(error).__name__, error.message.split("(")[1].split(")")[0])
"""


def test_a_full_disk_lets_nothing_through(tmp_path: Path) -> None:
    """Each request that was let through is counted."""
    budget = Budget(tokens=100_000, ledger=tmp_path / "l.db")
    through, kind, _ = _printed(_started(_FULL, pickle.dumps(budget).hex())).split(" ", 2)
    assert "JudgeUnavailableError" == kind
    budget._ledger.rows("UPDATE amounts SET at = 1 WHERE at > 0")  # its process has ended, and an hour passes
    assert 0 < int(through) == budget.spent().requests < 10_000


# One training on one host ------------------------------------------------------------------------------------------

_RANK = """
from builtin_rewards.endpoint.budget import Budget
from builtin_rewards.endpoint.errors import BudgetSpentError
from builtin_rewards.endpoint.messages import Usage
import sys
other, budget = Budget(requests=3), Budget(requests=7)
print(budget._ledger.path, flush=True)
sys.stdin.readline()
sent = 0
for _ in range(7):
    try:
        budget.reserve("one", Usage(1, 1)).settle()
        sent += 1
    except BudgetSpentError:
        break
print(sent, other.spent().requests, budget.is_of_one_host, flush=True)
"""


def _ranks(count: int, place: Path, **said: str) -> tuple[list[str], list[str]]:
    """Return the ledgers of so many processes of one launcher, and what each says after it has spent what it can."""
    env = {**os.environ, "TMPDIR": str(place), **said}
    command = [sys.executable, "-c", _RANK]
    pipe = subprocess.PIPE
    started = [subprocess.Popen(command, cwd=_ROOT, env=env, stdin=pipe, stdout=pipe, text=True) for _ in range(count)]
    try:
        ledgers = [one.stdout.readline().strip() for one in started if one.stdout is not None]
        told = [one.communicate("go\n", timeout=120)[0].strip() for one in started]
    finally:
        for one in started:
            one.kill()
            one.wait()
    return ledgers, told


def test_the_processes_of_a_training_on_a_host_share_a_private_ledger(tmp_path: Path) -> None:
    """Budgets with other caps keep apart; the launcher's next processes go on counting, another run's do not."""
    ledgers, told = _ranks(2, tmp_path, LOCAL_WORLD_SIZE="2", MASTER_PORT="29500")
    assert 1 == len(set(ledgers))
    assert 7 == sum(int(one.split()[0]) for one in told)
    assert ["0", "True"] == told[0].split()[1:]
    again, told = _ranks(2, tmp_path, LOCAL_WORLD_SIZE="2", MASTER_PORT="29500")
    assert (ledgers, ["0 0 True"] * 2) == (again, told)
    others, told = _ranks(2, tmp_path, LOCAL_WORLD_SIZE="2", MASTER_PORT="29501")
    assert set(ledgers).isdisjoint(others)
    assert 7 == sum(int(one.split()[0]) for one in told)


def test_a_process_alone_keeps_its_private_ledger_to_itself(tmp_path: Path) -> None:
    """And takes it along when it ends."""
    ledgers, told = _ranks(2, tmp_path)
    assert 2 == len(set(ledgers))
    assert ["7 0 True"] * 2 == told
    assert [] == list(tmp_path.iterdir())


def test_a_named_ledger_is_of_no_host(tmp_path: Path) -> None:
    """It may lie where all hosts have it."""
    assert not Budget(requests=1, ledger=tmp_path / "spent.db").is_of_one_host
