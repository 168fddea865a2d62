"""Tool calls as chat models write them: the marks that begin one, and one reader of what stands behind them."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from builtin_rewards.reading.json_values import (
    PYTHON_CONSTANTS,
    GoldObject,
    Untyped,
    fence_objection,
    read_json,
    read_json_at,
)
from builtin_rewards.reading.markdown import last_code
from sandbox import parse

_MOST_CALLS = 100
_MAX_CODE_CHARS = 20_000  # how many calls, and how much Python, are read; longer code is not a call


class ToolCall(NamedTuple):
    """A tool call: without a name where the text is not a call; ``arguments`` is ``None`` unless they are an object."""

    name: str
    arguments: dict[str, Any] | None


BROKEN = ToolCall("", None)  # text in the place of a call that is not a call
_NS = r"(?:[\w\uff5c]{1,12}[:_\uff5c])?"
_SEP = "<\uff5ctool\u2581sep\uff5c>"
_FORMS = {  # the marks that begin a call in each form, and those that must close it
    # Hermes, Qwen, GLM, LongCat; Llama 3.1, Qwen3-Coder, Seed; DeepSeek V3.2, MiniMax, Step
    "tool_call": (rf"<{_NS}tool_call>", rf"\s*</{_NS}tool_call>"),
    "function": ("<function=", r"\s*</function>"),
    "invoke": (rf'<{_NS}invoke\s+name="', rf"\s*</{_NS}invoke>"),
    # Mistral, Llama, Granite, Phi, Command, InternLM, LFM, Kimi; DeepSeek; Gemma, OLMo, Jamba, Nemotron; gpt-oss
    "open": (
        r"\[TOOL_CALLS\]|<\|(?:python_(?:tag|start)|tool_calls?(?:_section)?(?:_(?:begin|start))?|START_ACTION"
        r"|action_start\|>\s*<\|plugin)\|>|<[|\uff5c]tool\u2581calls?\u2581begin[|\uff5c]>|```[ \t]*tool_code[ \t]*\n"
        r"|<(?:\uff5cDSML\uff5c)?function_calls?>|<tool_calls>|<TOOLCALL>|functools(?=\[\s*\{)"
        r"|<\|channel\|>\w+\s+to=|<\|start\|>assistant\s+to=|to=(?=functions\.)",
        "",
    ),
}
_UNREAD = (  # text that looks like the mark of a call
    r"[<\[]\|?(?!\w*end\b)(?:\w{1,20}[_:])?(?i:tool|function)[_ -]?(?i:call|use|request|invoke)(?i:s?)(?=[^A-Za-z_])"
    rf"|<{_NS}(?:tools?|tool_code|function|call|execute|invoke|action)(?=[\s>])|<\|(?:tools_prefix|recipient)\|>"
    r"|Action: ?[\w.-]+[ \t]*\n+Action Input:"
)
_MARK = re.compile(
    r"(?=[<\[`]|functools\[|to=functions|Action:)(?:"
    + "|".join(f"(?P<{name}>{mark})" for name, (mark, _) in _FORMS.items())
    + rf"|(?P<unread>{_UNREAD}))\s*"
)
_CLOSES = {name: re.compile(close) for name, (_, close) in _FORMS.items()}
_CLOSING = re.compile(  # what may stand behind the calls of a form that needs no end
    r"(?:\s*(?:```(?=\s*<|[ \t]*(?:\n|\Z))|<[|\uff5c]\w[\w\u2581]*end[|\uff5c]>|</\w*(?:calls?|TOOLCALL)>"
    r"|<\|call\|>))+",
    re.IGNORECASE,
)
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input")
_KEY = r'"(?:name|function|tool|tool_name|action)"\s*:\s*"[^"\n]{1,200}"'
_ARGUMENTS = rf'"(?:{"|".join(_ARGUMENT_KEYS)}|action_input)"\s*:'
_JSON_IN_PROSE = re.compile(rf"\{{\s*(?:{_KEY}\s*,\s*{_ARGUMENTS}|{_ARGUMENTS}\s*\{{[^{{}}]*\}}\s*,\s*{_KEY})")
_BARE = re.compile(  # an answer that is nothing but a name with its arguments
    r'\W{0,4}(?:\w+: ?)?[\w.-]+(?:\s*\{\s*"[^"]*"\s*:.*\}|\((?:[\w.]+\()?\s*(?:\w+\s*=[^=].*|\)*)\))\s*', re.DOTALL
)


def calls_in(text: str) -> list[ToolCall]:
    """Return the calls in a final answer; those in a form that is not read are :data:`BROKEN`.

    A call begins at every mark of a form, as servers take it, except right behind a backtick. Text without a mark is a
    call only as a whole: as JSON, or as calls in Python's syntax in a list or in a fenced block.
    """
    whole_calls = _unmarked_calls(text)
    if whole_calls and BROKEN not in whole_calls and text.lstrip().startswith(("{", "[")):
        return whole_calls
    marked = marked_calls(text)
    if marked.calls:
        return [*marked.calls] + [BROKEN] * min(marked.unread_count, _MOST_CALLS)
    looks_like_call = not whole_calls and (_BARE.fullmatch(text) or _JSON_IN_PROSE.search(text))
    if marked.unread_count or looks_like_call:
        return [BROKEN] * max(1, min(marked.unread_count, _MOST_CALLS))
    return whole_calls


class MarkedCalls(NamedTuple):
    """The calls behind marks in a text, what stands around them, and how many marks are of no form that is read."""

    calls: tuple[ToolCall, ...]
    rest: str
    unread_count: int


def marked_calls(text: str) -> MarkedCalls:
    """Return the calls that begin at marks, one more than :data:`_MOST_CALLS` or so at most."""
    calls: list[ToolCall] = []
    parts: list[str] = []
    position, end, unread_count = 0, 0, 0  # where to look on, and where the last call ended
    while len(calls) <= _MOST_CALLS and (mark := _MARK.search(text, position)) is not None:
        position = mark.end()
        if text[mark.start() - 1 : mark.start()] == "`" and mark[0][0] != "`":
            continue
        if mark["unread"]:
            unread_count += 1
            continue
        new_calls, position = _read_calls(text, position, _CLOSES[mark.lastgroup or ""])
        calls += new_calls
        parts.append(text[end : mark.start()])
        end = closing.end() if (closing := _CLOSING.match(text, position)) else position
    return MarkedCalls(tuple(calls), "".join([*parts, text[end:]]), unread_count)


def call_of(value: object) -> ToolCall:
    """Return the call that a JSON value is, in OpenAI's form with ``function`` or plain, else :data:`BROKEN`."""
    if isinstance(value, Mapping) and isinstance(value.get("function"), Mapping):
        value = value["function"]
    if not isinstance(value, Mapping) or not isinstance(name := value.get("name", value.get("tool_name")), str):
        return BROKEN
    arguments = next((value[key] for key in _ARGUMENT_KEYS if key in value), None)
    if isinstance(arguments, GoldObject):
        return ToolCall(name, arguments)
    arguments = arguments or {}
    if isinstance(arguments, str):
        with suppress(ValueError):
            arguments = read_json(arguments) or {}
    return ToolCall(name, dict(arguments) if isinstance(arguments, Mapping) else None)


def calls_of(value: object) -> list[ToolCall]:
    """Return the calls in a JSON value: one, a list of them, or an object with ``tool_calls``."""
    return [call_of(item) for item in _as_list(value)]


def _as_list(value: object) -> list[Any]:
    if isinstance(value, dict) and "name" not in value and isinstance(value.get("tool_calls"), list):
        value = value["tool_calls"]
    return value if isinstance(value, list) else [value]


# How calls are written

_NEXT = re.compile(r"\s*;\s*|\s*\n\s*(?=\{)")  # what parts calls behind one mark
_CODE_LIST = re.compile(r"\[\s*[A-Za-z_][\w.]*\(\s*(?:\)|[A-Za-z_]\w*\s*=)")
_CODE_FENCE = re.compile(r"\s*```(?:python|py)[ \t]*\n(?P<code>[^`]*)```\s*")
_CODE_CALL = re.compile(r"(?!print\b)[A-Za-z_][\w.]*\(\s*[A-Za-z_]\w*\s*=[^=]")
_END_OF_CODE = re.compile(r"<\|\w+\|>|</[\w:]*(?:tool|function)_calls?>|```|\Z")
_HEAD = re.compile(  # a call's name with what its form writes before the arguments
    rf"(?:functions\.|function{_SEP}\s*)?(?P<name>[\w.-]+)(?::\d+)?(?:\s|\[CALL_ID\][\w-]*|\[ARGS\]|{_SEP}|\"?>|```"
    r"|<\|(?:channel|constrain)\|>\s*\w*|<\|(?:message|tool_call_argument_begin)\|>|(?:json|code)\b)*(?=[{<])"
)
_PAIR = re.compile(  # an argument in tags
    rf'\s*<(?:arg_key>|{_NS}parameter(?:=|\s+name="))(?P<key>[^<>"]*)"?(?:\s+string="(?P<text>true|false)")?'
    rf"(?:</arg_key>\s*<arg_value)?\s*>(?P<value>.*?)</(?:arg_value|{_NS}parameter)>",
    re.DOTALL,
)


def _unmarked_calls(text: str) -> list[ToolCall]:
    """Return the calls that a whole text without marks is; nothing for other data, which may have a name too."""
    fenced = _CODE_FENCE.fullmatch(text)
    source = (fenced["code"] if fenced else last_code(text, ("json",)) or "").strip()
    if not fenced and fence_objection(text):
        return []
    if _CODE_LIST.match(source) or (fenced and _CODE_CALL.match(source)):
        return _parse_code(source)
    values, end = _json_values(source, 0)
    if not values or end < len(source):
        return [BROKEN] if '"name"' in source and source[0] in "{[" else []
    return [call_of(value) for value in values] if any(map(_is_call, values)) else []


def _is_call(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    has_arguments = value.keys() & {*_ARGUMENT_KEYS} or value.keys() <= {"name", "id", "type"}
    return isinstance(value.get("function"), dict) or ("name" in value and bool(has_arguments))


def _json_values(text: str, position: int) -> tuple[list[Any], int]:
    """Return the JSON values from a place on, with lists taken apart, and the place behind them."""
    values: list[Any] = []
    end = -1
    while position != end and text.startswith(("{", "["), position):
        try:
            value, end = read_json_at(text, position)
        except ValueError:
            break
        values += _as_list(value)
        position = match.end() if (match := _NEXT.match(text, end)) else end
    return values, position


def _read_calls(text: str, start: int, close: re.Pattern[str]) -> tuple[list[ToolCall], int]:
    """Return the calls behind a mark, as JSON, a name with arguments, or Python, and the place behind them."""
    if _MARK.match(text, start):
        return [], start
    values, end = _json_values(text, start)
    if values:
        calls = [call_of(value) for value in values]
    elif head := _HEAD.match(text, start):
        calls, end = _read_named_call(head["name"], text, head.end(), bool(close.pattern))
    else:
        end = next(_END_OF_CODE.finditer(text, start)).start()
        calls = _parse_code(text[start:end])
    closing = close.match(text, end)
    return ([BROKEN], start) if closing is None else (calls, closing.end())


def _read_named_call(name: str, text: str, position: int, has_tags: bool) -> tuple[list[ToolCall], int]:
    """Return the call whose name stood before its arguments, in JSON or untyped tags, and the place behind."""
    if not has_tags or text[position] == "{":
        try:
            value, position = read_json_at(text, position)
        except ValueError:
            return [BROKEN], position
        return [ToolCall(name, value if isinstance(value, dict) else None)], position
    pairs: list[tuple[str, str]] = []
    while (pair := _PAIR.match(text, position)) is not None:
        value = pair["value"].removeprefix("\n").removesuffix("\n")
        pairs.append((pair["key"].strip(), value if pair["text"] == "true" else Untyped(value)))
        position = pair.end()
    return [ToolCall(name, dict(pairs)) if len(dict(pairs)) == len(pairs) else BROKEN], position


_PRINTED = re.compile(r"^\s*print\((\w[\w.]*\(.*\))\)\s*$", re.MULTILINE)  # Gemma prints its calls
_STRING_OR_WORD = re.compile(r"""(["'])(?>(?!\1)[^\\]|\\.)*+\1|\b(?:true|false|null)\b""", re.DOTALL)
_JSON_CONSTANTS = {constant: name for name, constant in PYTHON_CONSTANTS.items()}


def _parse_code(code: str) -> list[ToolCall]:
    """Return the calls in Python code that does nothing else, in lines, in a list, or printed."""
    if len(code) > _MAX_CODE_CHARS:
        return [BROKEN]
    code = _STRING_OR_WORD.sub(lambda match: _JSON_CONSTANTS.get(match[0], match[0]), _PRINTED.sub(r"\1", code))
    try:
        with warnings.catch_warnings():  # a text with "\d" in it is warned of
            warnings.simplefilter("ignore")
            lines = parse(code.strip()).body
        values = [line.value if isinstance(line, ast.Expr) else None for line in lines]
        parts = [part for value in values for part in (value.elts if isinstance(value, ast.List) else [value])]
        return [_parse_coded_call(part) for part in parts] or [BROKEN]
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return [BROKEN]


def _parse_coded_call(node: ast.expr | None) -> ToolCall:
    name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    if not isinstance(node, ast.Call) or not re.fullmatch(r"[\w.]+", name):
        return BROKEN
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    if node.args or None in keywords or len(keywords) < len(node.keywords):
        return ToolCall(name, None)
    try:
        arguments = {key: ast.literal_eval(value) for key, value in keywords.items()}
        return ToolCall(name.removesuffix(".call"), read_json(json.dumps(arguments)))
    except (TypeError, ValueError):
        return ToolCall(name, None)
