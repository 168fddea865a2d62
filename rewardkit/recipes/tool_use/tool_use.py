"""Tool use over several turns: the right calls, each without an error, and an answer at the end."""

from builtin_rewards.matching import contains_all
from builtin_rewards.tools import tool_call
from rewardkit import Message, Score, Step, reward, step_reward


@step_reward(each="tool_call", reduce="mean", score_range=(0, 1))
def clean(part: Step) -> Score:
    """A call that is JSON and whose tool has not answered with an error."""
    if part.arguments is None:
        return Score(0, "its arguments are no JSON object")
    failed = part.result is None or part.result.lower().startswith("error")
    return Score(float(not failed), part.result or "no answer")


@reward(score_range=(0, 1))
def closed(completion: list[Message], final: str) -> Score:
    """The last turn is the assistant's, calls nothing, and has the answer in it."""
    last = completion[-1] if completion else {}
    answer = "" if last.get("tool_calls") or last.get("role") != "assistant" else str(last.get("content") or "")
    score: Score = contains_all(completion=answer, answer=final)
    return score


agent = (0.4 * tool_call + 0.2 * clean + 0.4 * closed).named("agent")
