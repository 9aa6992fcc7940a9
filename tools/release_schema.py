# SPDX-License-Identifier: Apache-2.0
"""Writes the JSON Schema of a release from the result dataclasses of the server's kinds.

    make generated      writes client/reticent/release.schema.json; a test says when it is stale

What surrounds a result (id, query, charge, guarantee) is written here. A field of a result whose
default is None is left out of a reply where it is None, so it may be absent and is never null.
"""

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from reticent_server.kinds import KINDS

Json = dict[str, Any]

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "client/reticent/release.schema.json"
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
_SIZE = {"type": "number", "minimum": 0}
_TEXT = {"type": "string"}
_STATUSES = ["reply", "no_reply", "pending", "failed", "cancelled"]

PROGRESS: Json = {
    "type": "object",
    "description": "Of a pending release only: where it is on its planned schedule.",
    "required": ["state", "fraction", "remaining_ms"],
    "properties": {
        "state": {"enum": ["queued", "running"]},
        "fraction": _SHARE,
        "remaining_ms": {"type": "integer", "minimum": 0},
    },
}
ENVELOPE: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "urn:reticent:schema:release:1",
    "title": "A release of a Reticent server",
    "description": (
        "What POST /v1/releases replies, what is stored for ever, and what Release.save writes. "
        "Readers must accept further properties of a result; a release that an earlier version "
        "stored may lack some."
    ),
    "type": "object",
    "required": [
        "id", "dataset", "version", "status", "query", "charged", "guarantee", "result",
        "created_at",
    ],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "string", "pattern": "^rel_[A-Za-z0-9_-]+$"},
        "dataset": _TEXT,
        "version": {"type": "integer", "minimum": 1},
        "status": {"enum": _STATUSES},
        "query": {"type": "object", "required": ["kind"], "properties": {"kind": _TEXT}},
        "charged": {"$ref": "#/$defs/amount"},
        "guarantee": {"$ref": "#/$defs/guarantee"},
        "result": {"type": ["object", "null"]},
        "created_at": {
            "type": "string",
            "format": "date-time",
            "description": "When it was charged. The time of completion is stored nowhere.",
        },
        "answers": {
            "type": "string",
            "description": (
                "The reply's first line: which question a model's numbers answer. Absent where "
                "the kind's name says it, and in releases of earlier versions."
            ),
        },
        "progress": PROGRESS,
    },
}  # fmt: skip
PARTS: Json = {
    "amount": {
        "type": "object",
        "required": ["epsilon", "delta", "rho"],
        "properties": {
            "epsilon": _SIZE,
            "delta": _SHARE,
            "rho": _SIZE,
            "rho_delta": _SHARE,
            "rho_gdp": {"type": ["number", "null"], "minimum": 0},
        },
        "additionalProperties": False,
        "description": (
            "What was charged: (epsilon, delta) and, in zero-concentrated differential privacy, "
            "rho (rho_delta-approximate); rho_gdp is what accounts under the rule gdp are debited "
            "as rho."
        ),
    },
    "guarantee": {
        "type": "object",
        "required": [
            "tier", "unit", "epsilon", "delta", "mechanism", "statement", "reference",
            "assumptions",
        ],
        "properties": {
            "tier": {"enum": ["unconditional", "conditional"]},
            "unit": {
                "type": "string",
                "description": '"row", or the column whose values name the protected units.',
            },
            "epsilon": _SIZE,
            "delta": _SHARE,
            "mechanism": _TEXT,
            "statement": _TEXT,
            "reference": _TEXT,
            "assumptions": {"type": "array", "items": _TEXT},
        },
        "additionalProperties": False,
    },
    "n": {
        "type": "integer",
        "minimum": 1,
        "description": "The version's public number of records, not of those in use.",
    },
}  # fmt: skip


def schema() -> Json:
    """The schema of every release that an analyst is replied."""
    kinds = [kind for kind in KINDS if kind.for_analysts]
    inputs = [(kind.name, "serialization", TypeAdapter(kind.result)) for kind in kinds]
    results, shared = TypeAdapter.json_schemas(inputs, ref_template="#/$defs/{model}")  # type: ignore[arg-type]
    of_kinds: dict[str, tuple[Json, list[str]]] = {}
    for kind in kinds:
        result = _stated(results[kind.name, "serialization"])
        of_kinds.setdefault(json.dumps(result, sort_keys=True), (result, []))[1].append(kind.name)
    parts = {name: _stated(part) for name, part in shared["$defs"].items()}
    rules = [_rule({"status": {"const": "reply"}}, {"type": "object"}, {"type": "null"})]
    rules += [_rule(_reply_to(names), result) for result, names in of_kinds.values()]
    return {**ENVELOPE, "allOf": rules, "$defs": PARTS | parts}


def _reply_to(kinds: list[str]) -> Json:
    return {"status": {"const": "reply"}, "query": {"properties": {"kind": {"enum": kinds}}}}


def _rule(condition: Json, result: Json, otherwise: Json | None = None) -> Json:
    rule = {"if": {"properties": condition}, "then": {"properties": {"result": result}}}
    return rule if otherwise is None else rule | {"else": {"properties": {"result": otherwise}}}


def _stated(part: Any) -> Any:
    """A part of a schema as it is published: without titles of fields, and with what may be absent
    never null.
    """
    if isinstance(part, list):
        return [_stated(each) for each in part]
    if not isinstance(part, dict):
        return part
    stated = {name: _stated(each) for name, each in part.items() if name != "title"}
    if "properties" in part:
        required = part.get("required", [])
        fields = part["properties"].items()
        stated["properties"] = {k: _field(k, _stated(v), k in required) for k, v in fields}
    return stated


def _field(name: str, field: Json, required: bool) -> Json:
    if name == "n":
        return {"$ref": "#/$defs/n"}
    if required or "default" not in field:
        return field
    rest = {key: value for key, value in field.items() if key not in {"default", "anyOf"}}
    given = [each for each in field.get("anyOf", []) if each != {"type": "null"}]
    if not given:
        return rest
    return rest | (given[0] if len(given) == 1 else {"anyOf": given})


def source() -> str:
    """The file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TARGET.write_text(source(), "utf-8")
