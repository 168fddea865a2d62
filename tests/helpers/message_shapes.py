"""Messages with a tool's call and its answer, as each provider and library writes them: one table for all readers."""

from __future__ import annotations

from typing import Any

ARGUMENTS = {"q": "K2"}
ANSWER = "8611 m"


def _assistant(*blocks: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks) or None, **fields}


def _user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def _tool(content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "tool", "content": content, **fields}


def _text(text: str = ANSWER) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _openai(id: Any = "c1", name: str = "search", arguments: Any = '{"q": "K2"}') -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _anthropic(kind: str = "tool_use", **fields: Any) -> dict[str, Any]:
    return {"type": kind, "id": "c1", "name": "search", "input": ARGUMENTS, **fields}


def _result(content: Any, kind: str = "tool_result", **fields: Any) -> dict[str, Any]:
    return {"type": kind, "tool_use_id": "c1", "content": content, **fields}


def _vercel(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "toolCallId": "c1", "toolName": "search", **fields}


_CALLED = _assistant(tool_calls=[_openai()])
_VERCEL_CALL = _assistant(_vercel("tool-call", input=ARGUMENTS))

CALLS: dict[str, list[dict[str, Any]]] = {
    "OpenAI": [_CALLED, _tool(ANSWER, tool_call_id="c1")],
    "TRL": [_assistant(tool_calls=[{"type": "function", "function": {"name": "search", "arguments": ARGUMENTS}}]),
            _tool(ANSWER, name="search")],
    "legacy": [_assistant(function_call={"name": "search", "arguments": '{"q": "K2"}'}),
               {"role": "function", "name": "search", "content": ANSWER}],
    "Responses, items as blocks": [
        _assistant({"type": "function_call", "id": "f", "call_id": "c1", "name": "search", "arguments": '{"q": "K2"}'}),
        _user({"type": "function_call_output", "call_id": "c1", "output": ANSWER})],
    "Responses, MCP": [_assistant({"type": "mcp_call", "id": "c1", "name": "search", "server_label": "s",
                                   "arguments": '{"q": "K2"}', "output": ANSWER})],
    "Responses, a call of its own": [_assistant({"type": "search_call", "id": "c1", "action": ARGUMENTS,
                                                 "results": ANSWER})],
    "calls in messages of their own": [
        _CALLED, _assistant(tool_calls=[_openai("c2", "note")]), _tool(ANSWER, tool_call_id="c1")],
    "LangChain": [_assistant(tool_calls=[{"name": "search", "args": ARGUMENTS, "id": "c1", "type": "tool_call"}]),
                  _tool(ANSWER, tool_call_id="c1", name="search", id="message-7")],
    "LangChain, blocks": [_assistant({"type": "tool_call", "id": "c1", "name": "search", "args": ARGUMENTS}),
                          _tool([_text()], tool_call_id="c1")],
    "Anthropic": [_assistant(_text("So."), _anthropic()), _user(_result(ANSWER))],
    "Anthropic, blocks": [_assistant(_anthropic()), _user(_result([_text("8611"), _text("m")]))],
    "Anthropic, in role tool": [_assistant(_anthropic()), _tool([_result([_text()])])],
    "Anthropic, an error": [_assistant(_anthropic()), _user(_result(ANSWER, is_error=True))],
    "Anthropic's server": [
        _assistant(_anthropic("server_tool_use"), _result(ANSWER, "web_search_tool_result"), _text("So."))],
    "Anthropic's MCP": [_assistant(_anthropic("mcp_tool_use", server_name="s"), _result([_text()], "mcp_tool_result"))],
    "Bedrock": [_assistant({"text": "So."}, {"toolUse": {"toolUseId": "c1", "name": "search", "input": ARGUMENTS}}),
                _user({"toolResult": {"toolUseId": "c1", "content": [{"text": ANSWER}], "status": "success"}})],
    "Gemini": [_assistant({"functionCall": {"name": "search", "args": ARGUMENTS}}),
               _user({"functionResponse": {"name": "search", "response": ANSWER}})],
    "Gemini, with ids": [_assistant({"function_call": {"id": "c1", "name": "search", "args": ARGUMENTS}}),
                         _tool([{"function_response": {"id": "c1", "name": "search", "response": ANSWER}}])],
    "Vercel": [_VERCEL_CALL, _tool([_vercel("tool-result", output={"type": "text", "value": ANSWER})])],
    "Vercel, version 4": [_assistant(_vercel("tool-call", args=ARGUMENTS)),
                          _tool([_vercel("tool-result", result=ANSWER)])],
    "Vercel, an error": [_VERCEL_CALL, _tool([_vercel("tool-result", output={"type": "error-text", "value": ANSWER})])],
    "Vercel, content": [_VERCEL_CALL,
                        _tool([_vercel("tool-result", output={"type": "content", "value": [_text()]})])],
    "Vercel, a part of the page": [_assistant({"type": "tool-search", "toolCallId": "c1", "state": "output-available",
                                               "input": ARGUMENTS, "output": ANSWER})],
    "Vercel, a dynamic tool": [_assistant(_vercel("dynamic-tool", input=ARGUMENTS, output=ANSWER))],
    "Vercel, an invocation": [_assistant({"type": "tool-invocation", "toolInvocation": {
        "toolCallId": "c1", "toolName": "search", "args": ARGUMENTS, "result": ANSWER, "state": "result"}})],
    "Vercel, invocations beside the text": [{"role": "assistant", "content": "", "toolInvocations": [
        {"toolCallId": "c1", "toolName": "search", "args": ARGUMENTS, "result": ANSWER, "state": "result"}]}],
    "MCP's result": [_CALLED, _tool({"content": [_text()], "isError": False}, tool_call_id="c1")],
    "MCP's resource": [_CALLED, _tool([{"type": "resource", "resource": {"uri": "file:///k2", "text": ANSWER}}],
                                      tool_call_id="c1")],
}  # fmt: skip
"""A call of ``search`` with :data:`ARGUMENTS`, answered with :data:`ANSWER`, in every form that is read."""

ANSWERS: dict[str, tuple[Any, str]] = {
    "text": ("8611 m", "8611 m"),
    "nothing": (None, ""),
    "empty text": ("", ""),
    "hits": ([{"title": "K2", "height": 8611}], '[{"title": "K2", "height": 8611}]'),
    "hits with a type": ([{"type": "peak", "name": "K2"}], '[{"type": "peak", "name": "K2"}]'),
    "hits with a text": ([{"text": "8611 m"}, {"text": "8614 m"}], '[{"text": "8611 m"}, {"text": "8614 m"}]'),
    "texts": (["8611 m", "28251 ft"], '["8611 m", "28251 ft"]'),
    "numbers": ([8611, 28251.5, None, True], "[8611, 28251.5, null, true]"),
    "an empty list": ([], "[]"),
    "an object": ({"h": 8611, "ü": [1]}, '{"h": 8611, "ü": [1]}'),
    "an object with a text": ({"text": "8611 m"}, '{"text": "8611 m"}'),
    "an empty object": ({}, "{}"),
    "a number": (8611, "8611"),
    "no number": ([float("nan"), float("inf")], "[NaN, Infinity]"),
    "bytes": (b"8611 m", "8611 m"),
    "bytes in a list": ([b"8611 m"], '["8611 m"]'),
    "bytes that are no text": ([b"\xff\xfe"], '["[2 bytes: a form that is not read]"]'),
    "a set": ([{3, 1}], "[[1, 3]]"),
    "an object of Python": ([{"at": object()}], '[{"at": "<object object>"}]'),
    "text blocks": ([_text("8611"), _text("m")], "8611\nm"),
    "text and an image": ([_text("8611"), {"type": "image", "data": "AA=="}], "8611\n[image]"),
    "an image alone": ([{"type": "image_url", "image_url": {"url": "http://x/y.png"}}], "[image]"),
    "sound": ([{"type": "audio", "data": "AA=="}], "[audio: a form that is not read]"),
    "a resource of bytes": ([{"type": "resource", "resource": {"uri": "a", "blob": "AA=="}}],
                            "[resource: a form that is not read]"),
    "a link to a resource": ([{"type": "resource_link", "uri": "file:///k2", "name": "k2"}],
                             '{"uri": "file:///k2", "name": "k2"}'),
    "a block of json": ([{"type": "json", "json": {"h": 8611}}], '{"h": 8611}'),
    "a search result": ([{"type": "search_result", "title": "K2", "source": "x", "content": [_text()]}],
                        "K2\nx\n8611 m"),
    "a document": ([{"type": "document", "title": "K2", "source": {"type": "text", "data": "8611 m"}}], "K2\n8611 m"),
    "a document of bytes": ([{"type": "document", "source": {"type": "base64", "data": "AA=="}}],
                            "[document: a form that is not read]"),
    "an unknown block beside text": ([_text("8611"), {"type": "hologram", "x": 1}],
                                     "8611\n[hologram: a form that is not read]"),
    "data of the AI SDK": ({"type": "json", "value": {"h": 8611}}, '{"h": 8611}'),
}  # fmt: skip
"""What a tool gave back, and its text."""

BEDROCK_ANSWERS: dict[str, tuple[Any, str]] = {
    "text": ([{"text": "8611"}, {"text": "m"}], "8611\nm"),
    "json": ([{"json": {"h": 8611}}], '{"h": 8611}'),
    "image": ([{"image": {"format": "png", "source": {"bytes": b"\x00"}}}], "[image]"),
    "document": ([{"document": {"name": "k2", "source": {"bytes": b"\x00"}}}], "[document: a form that is not read]"),
}

UNREAD_CALLS = [{"type": "tool_summons", "which": "search"}, {"type": "functionRequest", "name": "search"}]
"""Blocks that are calls by their types, in no form that is read."""
