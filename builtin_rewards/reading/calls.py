"""Tool calls as chat models write them: a table of forms, each with its mark and its reader.

Owns which calls a text makes; what they are worth is the rewards' work.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from builtin_rewards.reading.values import Untyped, fenced_json, read_json, read_json_at
from sandbox.syntax import parse

_MOST_CALLS = 100
"""So many calls are read; what stands behind them is not."""
_MAX_CODE_CHARS = 20_000
"""Calls written in Python that are longer are no calls."""


class Call(NamedTuple):
    """One tool call.

    Attributes:
        name: The tool's name; empty where what was written is no call.
        arguments: By name; ``None`` where what was written is no JSON object.
    """

    name: str
    arguments: dict[str, Any] | None


BROKEN = Call("", None)
"""What stands in the place of a call and is none."""

_Read = tuple[list[Call], int]
_Reader = Callable[[str, int], _Read]


def calls_in(text: str) -> list[Call] | None:
    """Gives the calls that a final answer makes; ``None`` where it makes some in a form that is not read.

    Wherever a form's mark stands, a call begins, as a server takes it; right behind a backtick it is spoken of and no
    mark. What has no mark is a call where the whole answer is one: JSON, or a list of calls as Python writes them; a
    mark in it is text.
    Where some form is read, a mark of one that is not counts as a broken call.
    """
    calls = _unmarked(text) if text.lstrip().startswith(("{", "[")) else []
    if calls and BROKEN not in calls:
        return calls
    calls, place, unread = [], 0, 0
    while len(calls) <= _MOST_CALLS and (mark := _MARK.search(text, place)) is not None:
        place = mark.end()
        if text[mark.start() - 1 : mark.start()] == "`" and mark[0][0] != "`":
            continue
        if mark.lastgroup == "unread":
            unread += 1
        elif mark.lastgroup != "section":
            made, place = _FORMS[mark.lastgroup or ""][1](text, place)
            calls += made
    if calls:
        return calls + [BROKEN] * min(unread, _MOST_CALLS)
    if unread:
        return None
    calls = _unmarked(text)
    return None if not calls and _JSON_IN_PROSE.search(text) else calls


def call_of(value: Any) -> Call:
    """Gives the call that a JSON value is, in OpenAI's form with ``function`` or plain; :data:`BROKEN` if none."""
    if isinstance(value, Mapping) and isinstance(value.get("function"), Mapping):
        value = value["function"]
    name = value.get("name", value.get("tool_name")) if isinstance(value, Mapping) else None
    if not isinstance(name, str):
        return BROKEN
    arguments = value.get("arguments", value.get("parameters"))
    if isinstance(arguments, str):
        try:
            arguments = read_json(arguments) if arguments.strip() else {}
        except ValueError:
            return Call(name, None)
    if arguments is None:
        arguments = {}
    return Call(name, dict(arguments) if isinstance(arguments, Mapping) else None)


def calls_of(value: Any) -> list[Call]:
    """Gives the calls that a JSON value stands for: one, a list of them, or an object with ``tool_calls``."""
    return [call_of(one) for one in _listed(value)]


def _listed(value: Any) -> list[Any]:
    if isinstance(value, dict) and "name" not in value and isinstance(value.get("tool_calls"), list):
        value = value["tool_calls"]
    return value if isinstance(value, list) else [value]


# What has no mark

_CODED_LIST = re.compile(r"\s*\[\s*[A-Za-z_][\w.]*\(\s*(?:\)|[A-Za-z_]\w*\s*=)")
_JSON_IN_PROSE = re.compile(
    r'\{\s*"(?:name|function|tool|tool_name)"\s*:\s*"[^"\n]{1,200}"\s*,\s*"(?:arguments|parameters|args|input)"\s*:'
    r'|\{\s*"(?:arguments|parameters|args|input)"\s*:\s*\{[^{}]*\}\s*,\s*"(?:name|function|tool|tool_name)"\s*:'
)


def _unmarked(text: str) -> list[Call]:
    written = fenced_json(text)
    if written is None:
        return []
    if _CODED_LIST.match(written):
        return _coded(written)
    if written.lstrip()[:1] not in ("{", "["):
        return []
    values, end = _json_values(written, 0)
    if not values or written[end:].strip():
        return [BROKEN] if '"name"' in written else []
    return [call_of(value) for value in values] if any(map(_is_call, values)) else []


def _is_call(value: Any) -> bool:
    """Whether JSON without a mark is a call: data may have a name too."""
    if not isinstance(value, dict):
        return False
    known = value.keys() & {"arguments", "parameters"} or value.keys() <= {"name", "id", "type"}
    return isinstance(value.get("function"), dict) or ("name" in value and bool(known))


def _json_values(text: str, place: int) -> tuple[list[Any], int]:
    """Gives the JSON values that begin at a place, lists taken apart, and the place behind the last.

    Several are parted by semicolons or stand on lines of their own.
    """
    values: list[Any] = []
    start = _after(_BLANKS, text, place)
    while text[start : start + 1] in ("{", "["):
        try:
            value, place = read_json_at(text, start)
        except ValueError:
            break
        values += _listed(value)
        start = _after(_NEXT, text, place)
        if start == place:
            break
    return values, place


_BLANKS = re.compile(r"\s+")
_NEXT = re.compile(r"\s*;\s*|\s*\n\s*(?=\{)")


def _after(pattern: re.Pattern[str], text: str, place: int) -> int:
    """Gives the place behind a pattern that stands there, or that place."""
    found = pattern.match(text, place)
    return place if found is None else found.end()


# Forms that hold JSON


def _json(text: str, place: int) -> _Read:
    """Reads what stands behind a mark as JSON: a call, or a list of calls."""
    values, end = _json_values(text, place)
    return [call_of(value) for value in values] or [BROKEN], end


def _named(name: str, text: str, place: int, close: re.Pattern[str] | None = None) -> _Read:
    """Reads the arguments of a call whose name stood before them, and what must close it."""
    try:
        value, end = read_json_at(text, place)
    except ValueError:
        return [BROKEN], place
    closed = None if close is None else close.match(text, end)
    if close is not None and closed is None:
        return [BROKEN], end
    return [Call(name, value if isinstance(value, dict) else None)], end if closed is None else closed.end()


def _headed(
    head: str,
    other: _Reader | None = None,
    pair: re.Pattern[str] | None = None,
    close: re.Pattern[str] | None = None,
) -> _Reader:
    """Makes the reader of a form that has a head with the name, then the arguments: JSON, or tags with values."""
    pattern = re.compile(head)

    def read(text: str, place: int) -> _Read:
        found = pattern.match(text, place)
        if found is None:
            return ([BROKEN], place) if other is None else other(text, place)
        if pair is None or close is None or text.startswith("{", found.end()):
            return _named(found["name"], text, found.end(), close)
        return _paired(found["name"], text, found.end(), pair, close)

    return read


_NAME = r"(?P<name>[\w.-]+)"
_SEP = "<\uff5ctool\u2581sep\uff5c>"
_mistral = _headed(rf"\s*{_NAME}\s*(?:\[CALL_ID\][\w-]*)?(?:\[ARGS\])?\s*(?=\{{)", _json)
_deepseek_v3 = _headed(rf"\s*function{_SEP}\s*{_NAME}\s*```(?:json)?\s*")
_deepseek = _headed(rf"\s*{_NAME}\s*{_SEP}\s*(?=\{{)", _deepseek_v3)
_kimi = _headed(r"\s*(?:functions\.)?(?P<name>[\w.-]+)(?::\d+)?\s*<\|tool_call_argument_begin\|>\s*")
_harmony = _headed(
    rf"(?:functions\.)?{_NAME}[^<{{]{{0,40}}(?:<\|(?:channel|constrain)\|>[^<{{]{{0,40}}){{0,2}}(?:<\|message\|>\s*)?(?=\{{)"
)


# Forms of tags, which carry no types

_IN_TAG = re.compile(r"\s*(?=<(?:function=|(?:\uff5cDSML\uff5c|steptml:)?invoke\s|tool_call>))")
_END_OF_CALL = re.compile(r"\s*</(?:longcat_)?tool_call>")
_GLM_PAIR = re.compile(r"\s*<arg_key>(?P<key>[^<]*)</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>", re.DOTALL)
_FUNCTION_PAIR = re.compile(r"\s*<parameter=(?P<key>[^<>]+)>(?P<value>.*?)</parameter>", re.DOTALL)
_END_OF_FUNCTION = re.compile(r"\s*</function>")
_INVOKE_PAIR = re.compile(
    r'\s*<(?:\uff5cDSML\uff5c|steptml:)?parameter\s+name="(?P<key>[^"<>]+)"(?:\s+string="(?P<text>true|false)")?\s*>'
    r"(?P<value>.*?)</(?:\uff5cDSML\uff5c|steptml:)?parameter>",
    re.DOTALL,
)
_END_OF_INVOKE = re.compile(r"\s*</(?:\uff5cDSML\uff5c|steptml:)?invoke>")


def _tagged(text: str, place: int) -> _Read:
    """Reads what stands behind ``<tool_call>``: JSON (Hermes, Qwen), keys and values (GLM), or another form's mark."""
    inner = _IN_TAG.match(text, place)
    return _glm_or_json(text, place) if inner is None else ([], inner.end())


def _closed_json(text: str, place: int) -> _Read:
    values, end = _json_values(text, place)
    closed = _END_OF_CALL.match(text, end)
    if not values or closed is None:
        return [BROKEN], place
    return [call_of(value) for value in values], closed.end()


_glm_or_json = _headed(rf"\s*{_NAME}\s*(?=<)", _closed_json, _GLM_PAIR, _END_OF_CALL)
_function = _headed(rf"\s*{_NAME}\s*>\s*", None, _FUNCTION_PAIR, _END_OF_FUNCTION)
_invoke = _headed(r'\s*name="(?P<name>[^"<>]+)"\s*>\s*', None, _INVOKE_PAIR, _END_OF_INVOKE)


def _paired(name: str, text: str, place: int, pair: re.Pattern[str], close: re.Pattern[str]) -> _Read:
    """Reads keys and values up to what closes them; a key that stands twice makes no call, as in JSON."""
    arguments: dict[str, Any] = {}
    start, twice = place, False
    while (found := pair.match(text, place)) is not None:
        key = found["key"].strip()
        twice = twice or key in arguments
        typed = "text" in pair.groupindex and found["text"] == "true"
        value = found["value"].removeprefix("\n").removesuffix("\n")
        arguments[key] = value if typed else Untyped(value)
        place = found.end()
    closed = close.match(text, place)
    if closed is None:
        return [BROKEN], start
    return [BROKEN if twice else Call(name, arguments)], closed.end()


# Forms of Python

_END_OF_CODE = re.compile(r"<\|python_end\|>|<\|tool_call_end\|>|</function_calls>|```|<\|eom_id\|>")


def _code(text: str, place: int) -> _Read:
    """Reads what stands behind a mark as calls that Python writes, or as JSON; other marks may stand there too."""
    if _IN_TAG.match(text, place) is not None:
        return [], place
    closed = _END_OF_CODE.search(text, place)
    start, end = (len(text),) * 2 if closed is None else closed.span()
    if text[place:start].lstrip()[:1] == "{" or text[place:start].lstrip()[:2] == "[{":
        return _json(text, place)
    return _coded(text[place:start]), end


class _Constants(ast.NodeTransformer):
    """Takes JSON's words for Python's."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        words = {"true": True, "false": False, "null": None}
        return ast.Constant(words[node.id]) if node.id in words else node


def _coded(code: str) -> list[Call]:
    """Gives the calls that Python code makes and does nothing else: a line each, in a list, or printed."""
    if len(code) > _MAX_CODE_CHARS:
        return [BROKEN]
    try:
        with warnings.catch_warnings():  # a text with "\d" in it is warned of
            warnings.simplefilter("ignore")
            lines = parse(code.strip()).body
        return [_coded_call(one) for line in lines for one in _expressions(line)] or [BROKEN]
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return [BROKEN]


def _expressions(line: ast.stmt) -> list[ast.expr | None]:
    value = line.value if isinstance(line, ast.Expr) else None
    parts = value.elts if isinstance(value, ast.List) and value.elts else [value]
    return [_printed(part) for part in parts]


def _printed(part: ast.expr | None) -> ast.expr | None:
    """Gives what ``print`` is called with, where that is all; the part itself otherwise."""
    is_print = isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "print"
    if is_print and isinstance(part, ast.Call) and len(part.args) == 1 and isinstance(part.args[0], ast.Call):
        return part.args[0]
    return part


def _coded_call(node: ast.expr | None) -> Call:
    if not isinstance(node, ast.Call):
        return BROKEN
    name = ast.unparse(node.func)
    if not re.fullmatch(r"[\w.]+", name):
        return BROKEN
    keys = [keyword.arg for keyword in node.keywords]
    if node.args or None in keys or len(set(keys)) < len(keys):
        return Call(name, None)
    try:
        values = [ast.literal_eval(_Constants().visit(keyword.value)) for keyword in node.keywords]
        return Call(name.removesuffix(".call"), read_json(json.dumps(dict(zip(keys, values, strict=True)))))
    except (TypeError, ValueError):
        return Call(name, None)


# The table


_FORMS: dict[str, tuple[str, _Reader]] = {
    "hermes_qwen_glm_longcat": ("<(?:longcat_)?tool_call>", _tagged),
    "qwen_coder_llama_seed": ("<function=", _function),
    "deepseek_v32_minimax_step": (r"<(?:\uff5cDSML\uff5c|steptml:)?invoke(?=\s)", _invoke),
    "mistral": (r"\[TOOL_CALLS\]", _mistral),
    "llama": (r"<\|python_tag\|>", _code),
    "llama4_lfm_olmo": (r"<\|python_start\|>|<\|tool_call_start\|>|<function_calls>", _code),
    "gemma": (r"```[ \t]*tool_code[ \t]*\n", _code),
    "granite_phi": (r"<\|tool_call\|>|<function_call>|functools(?=\[\s*\{)", _json),
    "jamba_hunyuan_nemotron": (r"<tool_calls>(?=\s*[\[{])|<TOOLCALL>", _json),
    "internlm_command": (r"<\|action_start\|>\s*<\|plugin\|>|<\|START_ACTION\|>", _json),
    "deepseek": ("<\uff5ctool\u2581call\u2581begin\uff5c>", _deepseek),
    "kimi": (r"<\|tool_call_begin\|>", _kimi),
    "gpt_oss": (r"<\|channel\|>\w+\s+to=|<\|start\|>assistant\s+to=|to=(?=functions\.)", _harmony),
}
"""The pattern of what each form begins with, and the reader of what stands behind that."""
_SECTION = (
    r"<(?:minimax|seed):tool_call>|<\|tool_calls_section_begin\|>|<\uff5ctool\u2581calls\u2581begin\uff5c>"
    "|<tool_calls>|<\uff5cDSML\uff5cfunction_calls>"
)
"""What forms begin their calls with, before the first one's mark."""
_UNREAD = (
    r"[<\[]\|?(?!\w*end\b)(?:\w{1,20}[_:])?(?i:tool|function)[_ -]?(?i:call|use|request|invoke)(?i:s?)(?=[^A-Za-z_])"
    r"|<\|tools_prefix\|>|Action: ?[\w.-]+[ \t]*\n+Action Input:"
)
"""What looks like the mark of a call."""
_MARK = re.compile(
    r"(?=[<\[`]|functools\[|to=functions|Action:)(?:"
    + "|".join(f"(?P<{name}>{mark})" for name, (mark, _) in _FORMS.items())
    + f"|(?P<section>{_SECTION})|(?P<unread>{_UNREAD}))"
)
