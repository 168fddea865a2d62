"""The forms in which models write tool calls."""

from __future__ import annotations

import json
from typing import Any

import pytest

from builtin_rewards.reading.json_values import Untyped, same_json
from builtin_rewards.reading.tool_calls import BROKEN, ToolCall, calls_in

ARGUMENTS = {"city": "Oslo", "days": 3, "metric": True, "tags": ["a", "b"], "near": None}
JSON = json.dumps(ARGUMENTS)
CALL = json.dumps({"name": "weather", "arguments": ARGUMENTS})
CODE = "weather(city='Oslo', days=3, metric=True, tags=['a', \"b\"], near=None)"
BAR, DASH = "\uff5c", "\u2581"
XML = (
    "<parameter=city>\nOslo\n</parameter>\n<parameter=days>3</parameter><parameter=metric>\nTrue\n</parameter>"
    '<parameter=tags>["a", "b"]</parameter><parameter=near>None</parameter>'
)
GLM = "".join(
    f"<arg_key>{key}</arg_key>\n<arg_value>{value if isinstance(value, str) else json.dumps(value)}</arg_value>\n"
    for key, value in ARGUMENTS.items()
)


def deepseek(name: str) -> str:
    return f"<{BAR}{name.replace(' ', DASH)}{BAR}>"


def invoked(prefix: str = "", typed: bool = False) -> str:
    pairs = "".join(
        f'<{prefix}parameter name="{key}"{typed * f""" string="{str(isinstance(value, str)).lower()}" """.rstrip()}>'
        f"{value if isinstance(value, str) else json.dumps(value)}</{prefix}parameter>\n"
        for key, value in ARGUMENTS.items()
    )
    return f'<{prefix}invoke name="weather">\n{pairs}</{prefix}invoke>'


FORMS = {
    "Hermes": f"<tool_call>\n{CALL}\n</tool_call>",
    "Hermes, parameters": f'<tool_call>{{"name": "weather", "parameters": {JSON}}}</tool_call>',
    "Hermes, arguments as text": f"<tool_call>{json.dumps({'name': 'weather', 'arguments': JSON})}</tool_call>",
    "Hermes, pythonic": f"<tool_call>{CODE}</tool_call>",
    "Granite 3.1": f"<tool_call>[{CALL}]</tool_call>",
    "LongCat": f"<longcat_tool_call>{CALL}</longcat_tool_call>",
    "Llama 3.1": f"<function=weather>{JSON}</function>",
    "Qwen3-Coder": f"<tool_call>\n<function=weather>\n{XML}\n</function>\n</tool_call>",
    "Qwen3-Coder, bare": f"<function=weather>\n{XML}\n</function>",
    "Seed-OSS": f"<seed:tool_call>\n<function=weather>\n{XML}\n</function>\n</seed:tool_call>",
    "GLM 4.5": f"<tool_call>weather\n{GLM}</tool_call>",
    "GLM 4.7": f"<tool_call>weather{GLM}</tool_call>",
    "MiniMax": f"<minimax:tool_call>\n{invoked()}\n</minimax:tool_call>",
    "DeepSeek V3.2": f"<{BAR}DSML{BAR}function_calls>\n{invoked(f'{BAR}DSML{BAR}', True)}\n"
    f"</{BAR}DSML{BAR}function_calls>",
    "DeepSeek V3.2, JSON": f'<function_calls><invoke name="weather">\n{JSON}\n</invoke></function_calls>',
    "Step 3": invoked("steptml:"),
    "Command": f'<|START_ACTION|>[{{"tool_call_id": "0", "tool_name": "weather", "parameters": {JSON}}}]<|END_ACTION|>',
    "MiniMax M1": f"<tool_calls>\n{CALL}\n</tool_calls>",
    "Mistral": f"[TOOL_CALLS] [{CALL}]",
    "Mistral v11": f"Sure. [TOOL_CALLS]weather[CALL_ID]a1B2c3[ARGS]{JSON}",
    "Mistral v13": f"[TOOL_CALLS]weather[ARGS]{JSON}",
    "Mistral, tokens left out": f"[TOOL_CALLS]weather{JSON}",
    "Llama 3": f"<|python_tag|>{CALL}",
    "Llama 3, pythonic": f"[{CODE}]",
    "Llama 3, built in": f"<|python_tag|>{CODE.replace('weather(', 'weather.call(')}",
    "Llama 4": f"<|python_start|>[{CODE}]<|python_end|>",
    "LFM2": f"<|tool_call_start|>[{CODE}]<|tool_call_end|>It rains.",
    "LFM2, JSON": f"<|tool_call_start|>[{CALL}]<|tool_call_end|>",
    "OLMo 3": f"<function_calls>\n{CODE}\n</function_calls>",
    "Gemma": f"Okay.\n```tool_code\n{CODE}\n```",
    "Gemma, printed": f"```tool_code\nprint({CODE})\n```",
    "Granite 3.0": f"<|tool_call|>[{CALL}]",
    "Granite 20B": f"<function_call> {CALL}",
    "Phi 4": f"<|tool_call|>[{CALL}]<|/tool_call|>",
    "Phi 4 mini": f"functools[{CALL}]",
    "Jamba": f"<tool_calls>[{CALL}]</tool_calls>",
    "Nemotron": f"<TOOLCALL>[{CALL}]</TOOLCALL>",
    "InternLM": f"<|action_start|><|plugin|>{CALL}<|action_end|>",
    "DeepSeek V3": f"{deepseek('tool calls begin')}{deepseek('tool call begin')}function{deepseek('tool sep')}weather\n"
    f"```json\n{JSON}\n```{deepseek('tool call end')}{deepseek('tool calls end')}",
    "DeepSeek V3.1": f"{deepseek('tool calls begin')}{deepseek('tool call begin')}weather{deepseek('tool sep')}{JSON}"
    f"{deepseek('tool call end')}{deepseek('tool calls end')}",
    "Kimi K2": "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>"
    f"{JSON}<|tool_call_end|><|tool_calls_section_end|>",
    "gpt-oss": "<|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json<|message|>"
    f"{JSON}<|call|>",
    "gpt-oss, as the role's": "<|start|>assistant to=functions.weather<|channel|>commentary json<|message|>"
    f"{JSON}<|call|>",
    "gpt-oss, in another channel": f"<|start|>assistant to=functions.weather<|channel|>analysis json<|message|>{JSON}",
    "gpt-oss, continued": f"<|channel|>commentary to=functions.weather code<|message|>{JSON}",
    "gpt-oss, tokens left out": f"commentary to=functions.weather json{JSON}",
    "JSON": CALL,
    "a list": f"[{CALL}]",
    "a fenced block": f"```json\n{CALL}\n```",
    "OpenAI": json.dumps({"tool_calls": [{"type": "function", "function": {"name": "weather", "arguments": JSON}}]}),
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_every_form_gives_the_call(text: str) -> None:
    """The name and the arguments are read from each, with the types that the form carries."""
    calls = calls_in(text)
    assert calls is not None
    assert ["weather"] == [call.name for call in calls]
    assert same_json(ARGUMENTS, calls[0].arguments), calls


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_a_form_that_is_cut_off_is_no_right_call(text: str) -> None:
    """Wherever it ends, as when the tokens are spent, before its last value does: no call of it is the right one."""
    last = max(text.rfind(word) for word in ("null", "None"))
    for end in range(1, last + 4):
        calls = calls_in(text[:end]) or []
        assert not any(call.arguments is not None and same_json(ARGUMENTS, call.arguments) for call in calls), text[
            :end
        ]
        assert len(calls) <= 1


@pytest.mark.parametrize(
    "form",
    [
        "Hermes",
        "Qwen3-Coder",
        "GLM 4.5",
        "MiniMax",
        "Mistral v13",
        "Kimi K2",
        "DeepSeek V3.1",
        "LFM2",
        "gpt-oss",
        "Gemma",
    ],
)
def test_all_calls_of_a_text_are_read(form: str) -> None:
    """Several of one form, and of others, are several calls: a guess in each form is as many guesses."""
    other = FORMS[form].replace("weather", "time")
    assert ["weather", "time"] == [call.name for call in calls_in(f"{FORMS[form]}\n{other}") or []]
    for name in ("Hermes", "Llama 3.1", "Kimi K2", "Mistral v13", "DeepSeek V3"):
        assert ["time", "weather"] == [call.name for call in calls_in(f"{other}\n{FORMS[name]}") or []]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (f"<|python_tag|>{CALL}; {CALL}", ["weather", "weather"]),
        (f"{CALL}\n{CALL}", ["weather", "weather"]),
        (f"{CALL}; {CALL}", ["weather", "weather"]),
        ("[time(), weather(city='Oslo')]", ["time", "weather"]),
        ("```tool_code\ntime()\nweather(city='Oslo')\n```", ["time", "weather"]),
        ("<tool_call>time</tool_call>", ["time"]),
        # A mark in an argument is text.
        (f'<tool_call>{{"name": "say", "arguments": {{"text": {json.dumps(FORMS["Hermes"])}}}}}</tool_call>', ["say"]),
        (json.dumps({"name": "say", "arguments": {"text": FORMS["Hermes"] + "</think>"}}), ["say"]),
        ("<function=say><parameter=text><tool_call>{}</tool_call></parameter></function>", ["say"]),
        # Spoken of.
        ("I could write `<tool_call>weather</tool_call>`, but I do not.", []),
        (f"As in `{FORMS['Mistral v13']}`.", []),
        ("It would be weather(city='Oslo').", []),
        ("[see here](http://a.b) and [weather](x)", []),
        ("weather: sunny (3 days)", []),
        ("f(x) = 3", []),
        ("weather(s)", []),
        ('print("hello")', []),
        ("Oslo (days=3)", []),
        ('Use JSON such as {"a": 1}', []),
        ("The call <b>weather</b> and std::function<void()> do it.", []),
        ("[a, b, c]", []),
        # Data are no calls.
        ("[]", []),
        ("[1, 2]", []),
        ('{"name": "Bob", "age": 3}', []),
        ('[{"name": "Bob", "age": 3}]', []),
        ('{"function": "weather"}', []),
        # A call in the place of an argument, an argument without a name, a star.
        ("[weather(city=place())]", ["weather"]),
        ("[weather(city={1, 2}), weather(**x), weather(city='a', city='b')]", ["weather"] * 3),
        ("```tool_code\nweather('Oslo')\n```", ["weather"]),
        # Broken.
        ("[TOOL_CALLS]weather", [""]),
        (deepseek("tool calls begin"), [""]),
        ("[TOOL_CALLS][]", [""]),
        ("[weather(city='Os", [""]),
        ("[weather(city='Oslo'), 3]", ["weather", ""]),
        ("```tool_code\nimport os\nos.exit(1)\n```", ["", "os.exit"]),
        ("<function=weather>{}", [""]),
        ("<function=weather><parameter=a>1</parameter><parameter=a>2</parameter></function>", [""]),
        ("<tool_call>weather<arg_key>a</arg_key></tool_call>", [""]),
        ('<invoke name="weather">', [""]),
        (f"{deepseek('tool call begin')}weather", [""]),
        ("<|tool_call_begin|>functions.weather:0", [""]),
        ("<|channel|>commentary to=functions.weather <|message|>now<|call|>", [""]),
        ("<|python_tag|>print(1)", ["print"]),
        (f"{CALL} and so on", [""]),
        # A mark of an unread form beside calls is one that is broken.
        (f"{FORMS['Hermes']} <tool_use>", ["weather", ""]),
    ],
)
def test_which_calls_a_text_makes(text: str, names: list[str]) -> None:
    """What is no call is none, and what stands in the place of one is broken."""
    calls = calls_in(text)
    assert calls is not None
    assert names == [call.name for call in calls]
    assert BROKEN not in [call for call in calls if call.name]


@pytest.mark.parametrize(
    "text",
    [
        f"<TOOL_CALL>{CALL}</TOOL_CALL>",
        f"<tool_use>{CALL}</tool_use>",
        f"<functioncall> {CALL}",
        f"[TOOL_REQUEST]{CALL}[END_TOOL_REQUEST]",
        "<start_function_call>call:weather{city:<escape>Oslo<escape>}<end_function_call>",
        '<|tool_call>call:weather{city:<|"|>Oslo<|"|>}<tool_call|>',
        '<|tools_prefix|>[{"weather": {"city": "Oslo"}}]<|tools_suffix|>',
        'So {"arguments": {"city": "Oslo"}, "name": "weather"}.',
        "Thought: hm\nAction: weather\nAction Input: Oslo",
        f"Sure: {CALL}",
        f"I call it.\n\n{CALL}\n\nDone.",
        f"I could write `{FORMS['Hermes']}`.",
        # A call by its name in a tag, in another's keys, or bare.
        f'<function name="weather">{JSON}</function>',
        '<tool name="weather"><city>Oslo</city></tool>',
        f"<execute>{CODE}</execute>",
        "<call>weather()</call>",
        '<steptml:invoke "weather">',
        "<tool_code>weather()</tool_code>",
        "<action>weather</action>",
        f"<|recipient|>weather\n<|content|>{JSON}",
        '{"action": "weather", "action_input": {"city": "Oslo"}}',
        '```json\n{"tool": "weather", "args": {"city": "Oslo"}}\n```',
        f">>>weather\n{JSON}",
        f"@weather {JSON}",
        f"TOOL: weather {JSON}",
        f"weather{JSON}\n",
        CODE,
        f"print({CODE})",
        "tools.weather()",
    ],
)
def test_an_unread_form_is_a_broken_call(text: str) -> None:
    """It is no right call, and not a text without one."""
    assert {BROKEN} == set(calls_in(text))


@pytest.mark.parametrize(
    ("wanted", "written", "equal"),
    [
        ("5", "5", True),
        (5, "5", True),
        (5, "5.0", True),
        (5, " 5 ", True),
        (5, "6", False),
        (5, '"5"', False),
        (True, "true", True),
        (True, "True", True),
        (True, "1", False),
        (1, "true", False),
        (None, "null", True),
        (None, "None", True),
        (None, "", False),
        ("", "", True),
        ("None", "None", True),
        ("Oslo", '"Oslo"', False),
        ([1, "a"], '[1, "a"]', True),
        ([1, "a"], "[1, 'a']", False),
        ({"a": 1}, '{"a": 1, "a": 1}', False),
    ],
)
def test_values_of_forms_without_types(wanted: Any, written: str, equal: bool) -> None:
    """Text is equal to itself, any other value to its JSON."""
    assert equal is same_json(wanted, Untyped(written))


def test_types_are_kept_where_the_form_says_them() -> None:
    """DeepSeek V3.2 marks what is text."""
    written = '<invoke name="a"><parameter name="x" string="true">5</parameter></invoke>'
    assert [ToolCall("a", {"x": "5"})] == calls_in(written)
    assert not same_json(5, (calls_in(written) or [BROKEN])[0].arguments)
    assert not same_json({"x": 5}, (calls_in(written) or [BROKEN])[0].arguments)


@pytest.mark.parametrize(
    "unit",
    [
        *("<tool_call>", "<function=a>", '<invoke name="a">', "[TOOL_CALLS]", "<|python_tag|>", "```tool_code\n"),
        *(
            "<tool_call>a<arg_key>",
            "<function=a><parameter=b>",
            '<tool_call>{"a',
            "[TOOL_CALLS]a[ARGS]{",
            "to=functions.a",
        ),
        *(
            "<tool_call>[",
            "[a(b=",
            "[a(",
            "<|channel|>commentary to=",
            "<|tool_call_begin|>a:0",
            "[-",
            "{",
            "<",
            "\n\n",
        ),
    ],
)
def test_repeated_marks_are_read_once(unit: str) -> None:
    """100 kB of any mark is read up to a bounded number of calls."""
    calls = calls_in(unit * (100_000 // len(unit)))
    assert calls is None or len(calls) <= 200
