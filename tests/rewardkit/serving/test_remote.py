"""The client of reward servers: a runtime's scores, retries with an end, and faults that are nobody's or somebody's."""

from __future__ import annotations

import math
import multiprocessing
import pickle
from collections.abc import Iterator

import pytest
from reward_servers import Served, reward_server
from served import free_port

from rewardkit import (
    Cause,
    ConfigError,
    DataError,
    InfrastructureError,
    MissingColumnError,
    RewardDefinitionError,
    Rollout,
    Runtime,
    RuntimeClosedError,
    Score,
    Step,
    group_reward,
    reward,
    step_reward,
)
from rewardkit.credit import turn_scores
from rewardkit.serving import JoinedRuntime, RemoteRuntime

TOKEN = "a-token-of-the-tests"


@reward(default=None)
def right(completion: str, answer: str) -> Score | None:
    """Score a completion, with all that an outcome can hold."""
    if completion == "skip":
        return None
    if completion == "fault":
        raise ValueError("no such thing")
    print("said")
    return Score(float(completion == answer), "because", {"size": len(completion)})


@group_reward
def shortest(completions: list[str]) -> list[float]:
    return [float(len(one) == min(map(len, completions))) for one in completions]


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    with Runtime([right, shortest], workers=1, weights=[1.0, 0.5]) as made:
        made.wait_loaded()
        yield made


@pytest.fixture(scope="module")
def servers(runtime: Runtime) -> Iterator[list[Served]]:
    with reward_server(runtime, token=TOKEN) as one, reward_server(runtime, token=TOKEN) as two:
        yield [one, two]


def _rows(count: int) -> list[Rollout]:
    said = ["4", "5", "skip", "fault", "44"]
    return [Rollout(f"prompt {at // 4}", said[at % 5], {"answer": "4"}, [1, 2]) for at in range(count)]


def test_its_scores_are_a_runtimes(runtime: Runtime, servers: list[Served]) -> None:
    """Scores, totals and outcomes of 600 rows over two servers are those of the runtime itself, groups included."""
    rows = _rows(600)
    own = runtime.score(rows, step=3)
    with RemoteRuntime([one.url for one in servers], token=TOKEN) as remote:
        assert (runtime.names, runtime.weights) == (remote.names, remote.weights)
        assert [False, True] == [one.scores_groups for one in remote.rewards.values()]
        assert [one.version for one in runtime.rewards.values()] == [one.version for one in remote.rewards.values()]
        batch = remote.score(rows, step=3)
    assert own.totals == batch.totals
    for name, column in own.items():
        assert [one._replace(duration_s=0.0) for one in column] == [one._replace(duration_s=0.0) for one in batch[name]]


def test_it_travels_as_its_settings(servers: list[Served]) -> None:
    """A copy made by pickle asks the same servers."""
    with RemoteRuntime(servers[0].url, token=TOKEN) as remote:
        copied = pickle.loads(pickle.dumps(remote))
    with copied:
        assert [1.5] == copied.score(_rows(1)).totals


def test_its_stream_holds_each_outcome_once(servers: list[Served]) -> None:
    """Rows come as they are answered, with the outcomes of a batch; a loop that is left early costs nothing."""
    rows = _rows(600)
    with RemoteRuntime([one.url for one in servers], token=TOKEN) as remote:
        remote.wait_loaded()
        streamed = {(row, reward): outcome.score for row, reward, outcome in remote.stream(rows, step=3)}
        scores = remote.score(rows, step=3).scores
        assert streamed == {(row, name): column[row] for name, column in scores.items() for row in range(600)}
        assert next(remote.stream(rows)).reward in remote.names
    with pytest.raises(RuntimeClosedError):
        remote.wait_loaded()


def _refused(remote: RemoteRuntime) -> None:
    with pytest.raises(RuntimeClosedError, match="fork"), remote:
        remote.score(_rows(1))


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_a_fork_is_refused(servers: list[Served]) -> None:
    """A forked process has none of its threads, and is told so; its end leaves the first one's connections open."""
    with RemoteRuntime(servers[0].url, token=TOKEN, retry_s=0) as remote:
        remote.score(_rows(1))
        child = multiprocessing.get_context("fork").Process(target=_refused, args=(remote,))
        child.start()
        child.join(60)
        assert 0 == child.exitcode
        assert [1.5] == remote.score(_rows(1)).totals


def test_compositions_of_a_server_score() -> None:
    """A composition's outcome has the versions of its parts, and the composition one of its own."""
    with (
        Runtime({"sum": 0.5 * right + 0.5 * shortest}, workers=1) as sums,
        reward_server(sums) as served,
        RemoteRuntime(served.url, retry_s=0) as remote,
    ):
        assert sums.score(_rows(8)).totals == remote.score(_rows(8)).totals


@step_reward(credit="turns", score_range=(0, 9))
def size(part: Step) -> float:
    return float(len(part.text))


def test_what_turns_earned_comes_from_a_server() -> None:
    """A client knows which rewards give credit, and reads the numbers as those of a runtime here."""
    said = [{"role": role, "content": text} for role, text in (("assistant", "ab"), ("user", "?"), ("assistant", ""))]
    with Runtime([size, right], lane="inline") as own, reward_server(own) as one, RemoteRuntime(one.url) as remote:
        assert ["turns", None] == [reward.credit for reward in remote.rewards.values()]
        (outcome,) = remote.score([Rollout("", said, {"answer": ""})])["size"]
    assert [(0, 2.0), (2, 0.0)] == [turn[:2] for turn in turn_scores(said, outcome)]


@pytest.mark.parametrize("answer", [2**63 - 1, 10**20 + 1, -(2**63) - 1], ids=["64 bits", "more", "less"])
def test_whole_numbers_keep_their_digits(runtime: Runtime, servers: list[Served], answer: int) -> None:
    """One beyond 64 bits, as mathematics has them, is no float on the way."""
    row = Rollout("p", str(answer), {"answer": answer})
    with RemoteRuntime(servers[0].url, token=TOKEN) as remote:
        assert [1.0] == runtime.score([row]).scores["right"] == remote.score([row]).scores["right"]


def test_numbers_of_numpy_travel(servers: list[Served]) -> None:
    """Datasets hold them, and a runtime takes them."""
    numpy = pytest.importorskip("numpy")
    row = Rollout("p", "4", {"answer": numpy.int64(4), "shape": numpy.array([[1.0, 2.0]])})
    with RemoteRuntime(servers[0].url, token=TOKEN) as remote:
        assert [1.0] == remote.score([row]).scores["right"]


@pytest.mark.parametrize("depth", [10, 11, 12, 13, 40, 600, 3_000])
def test_a_completion_nested_however_deep_costs_no_other_one(servers: list[Served], depth: int) -> None:
    """A model may write such arguments of a tool; what is too deep for a body travels as text."""
    arguments: object = {}
    for _ in range(depth):
        arguments = {"inner": [arguments]}
    call = {"type": "function", "function": {"name": "look", "arguments": arguments}}
    other = Rollout("Look.", "no", {"answer": "no"})
    deep = Rollout("Look.", [{"role": "assistant", "content": "yes", "tool_calls": [call]}], {"answer": "yes"})
    with RemoteRuntime(servers[0].url, token=TOKEN) as client:
        scores = client.score([other, deep, other])
    assert [1.0, 1.0, 1.0] == [outcome.score for outcome in scores["right"]]


def test_two_groups_of_one_prompt_stay_two(servers: list[Served]) -> None:
    """Callers that are joined before the client keep groups of their own."""
    row = Rollout("p", "44", {"answer": "4"})
    other = Rollout("p", "4", {"answer": "4"})
    with JoinedRuntime(RemoteRuntime(servers[0].url, token=TOKEN), group_size=2, group_wait_s=30) as joined:
        batch = joined.score([row, row, other, row])
    assert [1.0, 1.0, 1.0, 0.0] == batch.scores["shortest"]


def test_a_group_of_one_row_waits_for_no_others(runtime: Runtime) -> None:
    """The client's groups are whole, whatever group size a server has for others."""
    with reward_server(runtime, group_size=8, group_wait_s=600.0) as served, RemoteRuntime(served.url) as remote:
        assert runtime.score(_rows(1)).totals == remote.score(_rows(1)).totals


def test_a_server_that_is_gone_is_passed_over(runtime: Runtime, servers: list[Served]) -> None:
    """What one server does not answer another is asked, and no row is lost."""
    with reward_server(runtime, token=TOKEN) as gone:
        remote = RemoteRuntime([gone.url, servers[0].url], token=TOKEN)
    with remote:
        assert runtime.score(_rows(600)).totals == remote.score(_rows(600)).totals


def test_what_nobody_answers_is_lost_and_not_scored(runtime: Runtime) -> None:
    """Where no server is left the batch is refused, or the rows are failed for infrastructure, as a runtime's are."""
    with reward_server(runtime) as gone:
        patient = RemoteRuntime(gone.url, retry_s=0.2, max_infrastructure_rate=1.0)
        strict = RemoteRuntime(gone.url, retry_s=0.0)
    with patient, strict:
        batch = patient.score(_rows(3))
        assert [None] * 3 == batch.totals
        assert {Cause.INFRASTRUCTURE} == {one.cause for column in batch.values() for one in column}
        for score in (strict.score, lambda rows: list(strict.stream(rows))):
            with pytest.raises(InfrastructureError, match=r"100% of 3 calls were lost .* does not answer"):
                score(_rows(3))


@pytest.mark.parametrize(
    ("settings", "lines"),
    [
        ({"retry_s": 0.5}, ["(retry_s=0.5 of RemoteRuntime)"]),
        ({"connect_s": 0.5}, ["(connect_s=0.5 of RemoteRuntime)"]),
        ({"retry_s": 0.01}, []),
    ],
    ids=["retry_s", "connect_s", "short"],
)
def test_a_client_says_once_that_it_waits_for_its_server(
    settings: dict[str, float], lines: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where it may wait long, whoever makes it learns the cause while it tries and not only at the end."""
    monkeypatch.setattr("rewardkit.serving.outages.PATIENCE_S", 0.0)
    monkeypatch.setattr("rewardkit.serving.remote.NOTED_WAIT_S", 0.5)
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(InfrastructureError, match="does not answer"):
        RemoteRuntime(url, token=TOKEN, **settings)
    texts = [record.getMessage() for record in caplog.records if record.name == "rewardkit.serving.remote"]
    assert len(lines) == len(texts)
    for line, text in zip(lines, texts, strict=True):
        assert text.startswith(f"{url} does not answer: ConnectionRefusedError: ")
        assert text.endswith(line)


def test_what_is_somebodys_fault_is_not_tried_again(servers: list[Served]) -> None:
    """Wrong rows, a wrong token and a wrong address are errors that say so."""
    with RemoteRuntime(servers[0].url, token=TOKEN) as remote:
        with pytest.raises(MissingColumnError, match="reward 'right' needs column 'answer'"):
            remote.score([Rollout("p", "4")])
        with pytest.raises(DataError, match="cannot travel to a reward server"):
            remote.score([Rollout("p", "4", {"answer": object()})])
    with pytest.raises(RuntimeClosedError):
        remote.score(_rows(1))
    with pytest.raises(ConfigError, match="answered 401: wrong token"):
        RemoteRuntime(servers[0].url, token="another-token")
    for address in ("rewards:8000", "http://rewards:80000", "http://rewards:8O00", "http://[::1"):
        with pytest.raises(ConfigError, match="expected an address such as"):
            RemoteRuntime(address)
    with pytest.raises(ConfigError, match=r"token: .* a line break") as refused:
        RemoteRuntime(servers[0].url, token=f"{TOKEN}\n")
    assert TOKEN not in str(refused.value)
    for wrong in ({"retry_s": -1}, {"max_infrastructure_rate": 1.5}, {"max_infrastructure_rate": math.nan}):
        with pytest.raises(RewardDefinitionError, match=f"^{next(iter(wrong))}="):
            RemoteRuntime("http://127.0.0.1:9", **wrong)
    with pytest.raises(ConfigError, match="got none"):
        RemoteRuntime([])


def test_servers_of_other_versions_are_refused(servers: list[Served]) -> None:
    """All of them serve the same rewards, or it is said when the client is made."""
    with (
        Runtime([shortest], workers=1) as other,
        reward_server(other, token=TOKEN) as served,
        pytest.raises(ConfigError, match="expected the same"),
    ):
        RemoteRuntime([servers[0].url, served.url], token=TOKEN)


def test_servers_of_one_set_may_differ_in_their_settings(runtime: Runtime) -> None:
    """A server that takes few rows is sent few; other weights are another set, and the refusal says which."""
    with (
        reward_server(runtime, most_rows=8) as small,
        reward_server(runtime, group_size=4) as gathering,
        RemoteRuntime([small.url, gathering.url]) as remote,
    ):
        assert runtime.score(_rows(40)).totals == remote.score(_rows(40)).totals
    heavy = Runtime([right, shortest], workers=1, weights=[1.0, 3.0])
    refused = pytest.raises(
        ConfigError, match=r"serves .*, shortest \w+ \* 3, and .*, shortest \w+ \* 0.5: expected the"
    )
    with heavy, reward_server(runtime) as one, reward_server(heavy) as other, refused:
        RemoteRuntime([one.url, other.url])


def test_an_adapter_takes_it_in_place_of_rewards(servers: list[Served]) -> None:
    """One line trains with a server's rewards; weights are the server's own unless the adapter has others."""
    pytest.importorskip("numpy")
    from trainer_adapter import RewardAdapter

    with RewardAdapter(RemoteRuntime(servers[0].url, token=TOKEN)) as adapter:
        assert (["right", "shortest"], [1.0, 0.5]) == (adapter.names, adapter.weights)
        assert ["shortest"] == adapter.group_rewards
        told = [
            function(prompts=["p", "p"], completions=["4", "44"], answer=["4", "4"])
            for function in adapter.reward_funcs
        ]
        assert [[1.0, 0.0], [1.0, 0.0]] == told
    with RemoteRuntime(servers[0].url, token=TOKEN) as remote, RewardAdapter(remote, weights=[1.0, 2.0]) as adapter:
        assert ([1.0, 2.0], {"right": 1.0, "shortest": 0.5}) == (adapter.weights, remote.weights)
