"""An invoice read into JSON: a part of the score for each field that is right."""

from builtin_rewards.structured import json_fields, json_schema

SCHEMA = {
    "type": "object",
    "properties": {
        "vendor": {"type": "string"},
        "total": {"type": "number"},
        "currency": {"enum": ["EUR", "USD", "GBP"]},
        "paid": {"type": "boolean"},
    },
    "required": ["vendor", "total", "currency", "paid"],
    "additionalProperties": False,
}

fields = json_fields.with_options(name="fields")
shape = json_schema(SCHEMA).with_options(name="shape")
invoice = (0.8 * fields + 0.2 * shape).named("invoice")
