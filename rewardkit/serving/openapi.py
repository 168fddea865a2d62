"""The server described as OpenAPI: its addresses, what they take and what they answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardkit.serving.contract import TABLE

_TEXT = {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}]}
_STRINGS = {"type": "array", "items": {"type": "string"}}
_ROLLOUT = {
    "type": "object",
    "required": ["prompt", "completion"],
    "additionalProperties": False,
    "properties": {
        "prompt": _TEXT,
        "completion": _TEXT,
        "example": {"type": "object", "description": "The columns that the rewards read."},
        "completion_ids": {"type": "array", "items": {"type": "integer"}},
        "sample": {"type": "string", "description": "Unique in the run; a row that is sent again is known by it."},
    },
}
_BODIES: Mapping[str, tuple[str, list[str], dict[str, Any]]] = {
    "/v1/score": (
        "Score rollouts; Accept: application/x-ndjson for a line each.",
        ["rollouts"],
        {
            "rollouts": {"type": "array", "items": _ROLLOUT},
            "step": {"type": "integer", "minimum": 0},
            "epoch": {"type": "number", "minimum": 0},
            "gather": {
                "type": "boolean",
                "description": "Whether rows wait for their group; where it is not said, one row alone does.",
            },
        },
    ),
    "/v1/check": (
        "The values of columns that a reward's annotations refuse; nothing is scored.",
        ["reward", "examples"],
        {"reward": {"type": "string"}, "examples": {"type": "array", "items": {"type": "object"}}},
    ),
    "/get_reward": (
        "OpenRLHF's remote reward model.",
        ["query", "prompts", "labels"],
        {"query": _STRINGS, "prompts": _STRINGS, "labels": {"type": "array"}},
    ),
    "/slime": (
        "slime's remote reward model: the reply is the reward.",
        ["prompt", "response"],
        {"prompt": _TEXT, "response": _TEXT, "label": {}},
    ),
    "/verify": (
        "NeMo Gym's verification.",
        ["responses_create_params", "response"],
        {"responses_create_params": {"type": "object"}, "response": {"type": "object"}},
    ),
    "/seed_session": ("NeMo Gym's begin of a session, which holds nothing.", [], {}),
    "/aggregate_metrics": (
        "NeMo Gym's metrics of verified rows.",
        ["verify_responses"],
        {"verify_responses": {"type": "array", "items": {"type": "object"}}},
    ),
    "/evaluate": (
        "eval-protocol's evaluation.",
        ["messages"],
        {"messages": {"type": "array", "items": {"type": "object"}}, "ground_truth": {}, "kwargs": {"type": "object"}},
    ),
    "/score": ("LLaMA-Factory's reward API.", ["messages"], {"model": {"type": "string"}, "messages": _STRINGS}),
}
_READ = {
    "/v1/rewards": "The rewards, their weights, versions, parameters and options.",
    "/livez": "Whether the process answers.",
    "/health": "The same as /livez.",
    "/readyz": "Whether it takes rows.",
    "/metrics": "Counters for Prometheus.",
    "/openapi.json": "This description.",
}
_ERROR = {
    "description": "One line of JSON: why, and what to do.",
    "content": {"application/json": {"schema": {"type": "object", "properties": {"error": {"type": "string"}}}}},
}


def description(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return the OpenAPI description of the server with these rewards, weights and versions."""
    from rewardkit import __version__  # the package's own module is whole by now

    errors = {str(status): _ERROR for status in (400, 401, 404, 405, 413, 422, 503)}
    paths: dict[str, Any] = {}
    for route, (summary, required, properties) in _BODIES.items():
        schema = {"type": "object", "required": required, "properties": properties}
        fates = [f"{fate}: {reply.number}; {reply.beside}" for fate, reply in TABLE.get(route, {}).items()]
        operation = {
            "summary": summary,
            "description": "\n".join(fates),
            "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
            "responses": {"200": {"description": "The scores."}, **errors},
        }
        paths[route] = {"post": operation}
    for route, summary in _READ.items():
        paths[route] = {"get": {"summary": summary, "responses": {"200": {"description": summary}}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "rewardkit", "version": __version__, "x-rewards": dict(info)},
        "paths": paths,
        "components": {"securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}}},
        "security": [{"bearer": []}],
    }
