# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a request that does not fit its schema, in one sentence.

Names known fields and uses constant words, never values. The name of a field that is not known is
repeated where it is short and could be a field's.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, Literal, get_args, get_origin, get_type_hints

from reticent_server.errors import InvalidPrivacy, InvalidQuery, InvalidRequest
from reticent_server.kinds import KINDS

BODY = "The body must be one JSON object, sent as application/json, with no key twice."

KEY = "The header Idempotency-Key must be sent once, with 1 to 255 visible ASCII characters."

_SENTENCES: Mapping[str, str] = {
    "missing": "is missing",
    "extra_forbidden": "holds a field that is not known here",
    "unexpected_keyword_argument": "holds a field that is not known here",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than": "must be less than {lt:g}",
    "less_than_equal": "must be at most {le:g}",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "string_type": "must be a string",
    "string_unicode": "must be a string of Unicode characters",
    "string_too_short": "is empty",
    "string_too_long": "is too long",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "too_short": "has too few entries: at least {min_length}",
    "too_long": "has too many entries: at most {max_length}",
    "string_pattern_mismatch": "holds characters that are not allowed",
    "model_attributes_type": "must be a JSON object",
    "model_type": "must be a JSON object",
    "dataclass_type": "must be a JSON object",
    "union_tag_not_found": "must name its kind, one of those that /openapi.json lists",
    "union_tag_invalid": "must be of a kind that /openapi.json lists",
}

_WIDTHS = ("wanted", "ci_ratio", "half_width")
_REQUEST = ("body", "dataset", "query", "privacy", "epsilon", "delta", "limit", "offset", *_WIDTHS)
_PROJECT = ("project", "name", "purpose", "members", "ends_on", "budgets", "plan")
_QUERIES = frozenset(each.name for kind in KINDS for each in fields(kind.query))
_KNOWN = _QUERIES | {*_REQUEST, *_PROJECT}
_NOT_DECLARED = ("extra_forbidden", "unexpected_keyword_argument")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")


def explained(errors: Sequence[Any]) -> InvalidRequest:
    """The first error of pydantic's list, as one of this project's."""
    kind, loc = (errors[0]["type"], errors[0]["loc"]) if errors else ("", ())
    if loc[:1] == ("header",):
        return InvalidRequest(KEY)
    extra = kind in _NOT_DECLARED
    place = [part for part in (loc[:-1] if extra else loc) if part in _KNOWN]
    if place in ([], ["body"]) and not extra:
        return InvalidRequest(BODY)
    field = ".".join(place[1:]) or "The body"
    said = _unknown(errors[0]) if extra else _sentence(kind, errors[0])
    return _class_of(place)(f"{field} {said}.")


def _unknown(error: Any) -> str:
    """With the field's name, and the field that is nearest: by its name, or by what it takes."""
    *path, name = error["loc"]
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return _SENTENCES["extra_forbidden"]
    query = next((kind.query for part in path[::-1] for kind in KINDS if kind.name == part), None)
    sent = error.get("input")
    takes = [field for field, words in _words(query) if isinstance(sent, str) and sent in words]
    known = [each.name for each in fields(query)] if query else [*_REQUEST[1:], *_PROJECT]
    near = (takes or get_close_matches(name, known, n=1))[:1]
    return f"has no field {name}" + (f"; the nearest is {near[0]}" if near else "")


def _words(query: type | None) -> Iterator[tuple[str, set[Any]]]:
    """The fields of a question that take one of a few words, and these words."""
    for name, hint in (get_type_hints(query) if query else {}).items():
        parts = [hint, *get_args(hint)]
        words = {w for p in parts if get_origin(p) is Literal for w in get_args(p)}
        if words and name != "kind":
            yield name, words


def _sentence(kind: str, error: Any) -> str:
    """With the values or limits that are allowed, which the interface declares; never what was
    sent."""
    if kind == "literal_error":
        return f"must be one of {error['ctx']['expected']}"
    if kind == "missing" and isinstance(error["loc"][-1], int):
        return "has too few entries"
    return _SENTENCES.get(kind, "is not valid").format_map(error.get("ctx", {}))


def _class_of(place: Sequence[str]) -> type[InvalidRequest]:
    if place[:2] == ["body", "query"]:
        return InvalidQuery
    return InvalidPrivacy if place[:2] == ["body", "privacy"] else InvalidRequest
