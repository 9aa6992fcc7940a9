# SPDX-License-Identifier: Apache-2.0
"""What a change of a JSON schema or of an OpenAPI document breaks, in sentences.

A request breaks where a body that was accepted no longer is: a field is gone, is newly required, or
takes fewer types, values or a narrower range. A reply breaks where a reader meets what it never
met: a field is gone or may be absent, or has a further type or value. New paths, new optional
fields of requests and new fields of replies break nothing.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = Mapping[str, Any]

UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems")
LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems")
METHODS = frozenset({"get", "put", "post", "delete", "patch", "head", "options"})
JSON_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_LAST_PART = re.compile(r"(\.?[^.\[\]{}<>]+|\[\]|\{\}|<[^>]*>)$")


@dataclass(slots=True)
class Place:
    """What may stand at one place of a document. types: of which every value may. values: others,
    by type.
    """

    types: set[str] = field(default_factory=set)
    values: set[tuple[str, str]] = field(default_factory=set)
    limits: dict[str, Any] = field(default_factory=dict)
    required: bool = True


Places = dict[str, Place]


def places(schema: Json, document: Json) -> Places:
    """Every place below a schema by its path, such as `query<glm>.terms[]`; `document` has what
    `$ref` names.
    """
    found: Places = {}
    _add(found, "", schema, _References(document))
    return found


@dataclass(frozen=True, slots=True)
class _References:
    """Looks up `$ref`; `open` are those that are being followed, which a recursive schema would
    repeat.
    """

    document: Json
    open: tuple[str, ...] = ()

    def entered(self, name: str) -> tuple[Json | None, "_References"]:
        if name in self.open:
            return None, self
        target: Any = self.document
        for part in name.removeprefix("#/").split("/"):
            target = target[part]
        return target, _References(self.document, (*self.open, name))


def _add(found: Places, path: str, schema: Json, references: _References) -> None:
    """Adds what `schema` allows at `path` and below; several schemas of one place add up."""
    if "$ref" in schema:
        target, inside = references.entered(schema["$ref"])
        if target is not None:
            _add(found, path, target, inside)
        return
    for word in ("anyOf", "oneOf", "allOf"):
        for each in schema.get(word, ()):
            _add(found, path + _kind(each, references), each, references)
    if {"anyOf", "oneOf"} & schema.keys():
        found.setdefault(path, Place())
        return
    _add_own(found.setdefault(path, Place()), schema)
    _add_below(found, path, schema, references)


def _kind(schema: Json, references: _References) -> str:
    """`<mean>` for one of several bodies that are told apart by a constant `kind`, else nothing."""
    target = references.entered(schema["$ref"])[0] if "$ref" in schema else schema
    kind = (target or {}).get("properties", {}).get("kind", {}).get("const")
    return "" if kind is None else f"<{kind}>"


def _add_own(place: Place, schema: Json) -> None:
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    types = schema.get("type", sorted(JSON_TYPES))
    if values is not None:
        place.values |= {(_TYPES[type(value)], json.dumps(value)) for value in values}
    else:
        place.types |= {types} if isinstance(types, str) else set(types)
        place.types |= {"integer"} if "number" in place.types else set()
    for name in (*UPPER, *LOWER, "pattern"):
        if name in schema:
            place.limits.setdefault(name, schema[name])


def _add_below(found: Places, path: str, schema: Json, references: _References) -> None:
    required = schema.get("required", ())
    for name, below in schema.get("properties", {}).items():
        place = f"{path}.{name}" if path else name
        _add(found, place, below, references)
        for known in found.keys() & {place}:
            found[known].required &= name in required
    for word, sign in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(word), Mapping):
            _add(found, path + sign, schema[word], references)
    for below in schema.get("prefixItems", ()):
        _add(found, f"{path}[]", below, references)


def _parent(path: str) -> str:
    """The place above: of `query<glm>.terms[]`, `query<glm>.terms`."""
    return _LAST_PART.sub("", path)


def request_breaks(old: Places, new: Places) -> Iterator[str]:
    """How bodies that were accepted may be refused now."""
    for path, before in old.items():
        now = new.get(path)
        if now is None:
            if _parent(path) in new:
                yield f"`{path}` is no longer accepted"
            continue
        if now.required and not before.required:
            yield f"`{path}` is now required"
        if lost := _lost(before, now):
            yield f"`{path}` no longer accepts {', '.join(lost)}"
        yield from (f"`{path}` has a narrower {name}" for name in _narrower(before, now))
    for path in new.keys() - old.keys():
        if new[path].required and _parent(path) in old and not path.endswith(("[]", "{}", ">")):
            yield f"`{path}` is new and required"


def reply_breaks(old: Places, new: Places) -> Iterator[str]:
    """How replies may have what a reader never met."""
    for path, before in old.items():
        now = new.get(path)
        if now is None:
            if _parent(path) in new:
                yield f"`{path}` is gone"
            continue
        if before.required and not now.required:
            yield f"`{path}` may now be absent"
        if more := _lost(now, before):
            yield f"`{path}` may now be {', '.join(more)}"


def _lost(wide: Place, narrow: Place) -> list[str]:
    """Types and values of `wide` that `narrow` does not have."""
    values = wide.values - narrow.values
    lost = [text for kind, text in values if kind not in narrow.types]
    return [*(f"every {kind}" for kind in sorted(wide.types - narrow.types)), *sorted(lost)]


def _narrower(before: Place, now: Place) -> Iterator[str]:
    for name, limit in now.limits.items():
        was = before.limits.get(name)
        if was is None or (
            (name in UPPER and limit < was)
            or (name in LOWER and limit > was)
            or (name == "pattern" and limit != was)
        ):
            yield name


def http_breaks(old: Json, new: Json) -> list[str]:
    """What a new OpenAPI document breaks for clients of an old one; empty where nothing."""
    found = []
    for path, operations in old["paths"].items():
        for method in METHODS & operations.keys():
            call, now = f"{method.upper()} {path}", new["paths"].get(path, {}).get(method)
            if now is None:
                found.append(f"{call} is gone")
                continue
            found += [f"{call}: {text}" for text in _call(operations[method], now, old, new)]
    return sorted(found)


def _call(before: Json, now: Json, old: Json, new: Json) -> Iterator[str]:
    yield from _parameters(before, now, old, new)
    body, body_now = _bodies(before.get("requestBody", {})), _bodies(now.get("requestBody", {}))
    if body_now and not body and now["requestBody"].get("required"):
        yield "a body is now required"
    for media, schema in body.items():
        if media not in body_now:
            yield f"a body of {media} is no longer accepted"
            continue
        changes = request_breaks(places(schema, old), places(body_now[media], new))
        yield from (f"request: {text}" for text in changes)
    for status, reply in before["responses"].items():
        yield from _reply(status, reply, now, old, new)


def _parameters(before: Json, now: Json, old: Json, new: Json) -> Iterator[str]:
    was, present = _named(before), _named(now)
    for key, parameter in was.items():
        if key not in present:
            yield f"the {key[0]} parameter `{key[1]}` is gone"
            continue
        changes = request_breaks(
            places(parameter["schema"], old), places(present[key]["schema"], new)
        )
        yield from (f"the {key[0]} parameter `{key[1]}`: {text}" for text in changes)
    for key, parameter in present.items():
        if parameter.get("required") and not was.get(key, {}).get("required"):
            yield f"the {key[0]} parameter `{key[1]}` is now required"


def _named(operation: Json) -> dict[tuple[str, str], Json]:
    """Parameters by place (`query`, `header`, …) and name."""
    return {(each["in"], each["name"]): each for each in operation.get("parameters", ())}


def _reply(status: str, reply: Json, now: Json, old: Json, new: Json) -> Iterator[str]:
    if status not in now["responses"]:
        yield f"{status} is gone"
        return
    present = _bodies(now["responses"][status])
    for media, schema in _bodies(reply).items():
        if media not in present:
            yield f"{status}: {media} is gone"
            continue
        changes = reply_breaks(places(schema, old), places(present[media], new))
        yield from (f"{status}: {text}" for text in changes)


def _bodies(holder: Json) -> dict[str, Json]:
    """Schemas by media type."""
    return {media: each["schema"] for media, each in holder.get("content", {}).items()}


def release_breaks(old: Json, new: Json) -> list[str]:
    """What a new schema of a release breaks for readers of an old one: its members, and each kind's
    result.
    """
    found = list(reply_breaks(_release(old), _release(new)))
    before, now = _results(old), _results(new)
    for kind, schema in before.items():
        if kind not in now:
            found.append(f"the result of {kind} is gone")
            continue
        changes = reply_breaks(places(schema, old), places(now[kind], new))
        found += [f"the result of {kind}: {text}" for text in changes]
    return sorted(found)


def _release(schema: Json) -> Places:
    own = {name: value for name, value in schema.items() if name != "allOf"}
    return places(own, schema)


def _results(schema: Json) -> dict[str, Json]:
    """Each kind's result: the schema says `if query.kind is one of these, then result is that`."""
    found = {}
    for rule in schema.get("allOf", ()):
        kinds = rule["if"]["properties"].get("query", {}).get("properties", {}).get("kind", {})
        for kind in kinds.get("enum", [kinds["const"]] if "const" in kinds else []):
            found[kind] = rule["then"]["properties"]["result"]
    return found
