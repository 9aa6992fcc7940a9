# SPDX-License-Identifier: Apache-2.0
"""A protocol of a pooled study, as a site's server reads it.

The client's reticent._pooled.protocol describes the file. Its digest is SHA-256 of the document
without `signatures`, as canonical JSON (RFC 8785); what curators sign is that text. Tests hold both
readers to one digest and one question by site.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from math import isfinite
from typing import Any

from reticent_server.domain.query import Privacy
from reticent_server.domain.schema import Column, Schema
from reticent_server.domain.strict_json import parse
from reticent_server.errors import InvalidRequest

VERSION = 1
LARGEST = 1 << 17
"""Bytes of a file: some ten times the usual. One of as many takes a tenth of a second to read,
which every plan that names it does."""

_WORD = re.compile(r"`([^`]+)`|([A-Za-z_][A-Za-z0-9_.]*)")
_MOST_DIGITS = 21
"""Digits before the point beyond which a number is written with an exponent (ECMA-262)."""
_MOST_ZEROS = 6
"""Places after the point of the first digit beyond which it is, too."""

_MEMBERS = frozenset(("protocol", "title", "study", "epsilon", "delta", "columns", "sites"))
_STUDY = frozenset(("variables", "main", "where"))
_SITE = frozenset(("epsilon", "bounds", "without", "key"))
_COLUMN = frozenset(("kind", "bounds", "levels"))
_TITLE = 80  # characters of a title that a list shows: a line
_NO_PROTOCOL = (
    'That is no protocol: a JSON object with "protocol": 1, "study", "epsilon", "columns" and '
    '"sites", each once and with no other members than the page on pooled studies describes.'
)


@dataclass(frozen=True, slots=True)
class Agreed:
    """document: without signatures. signatures: by site, as detached signatures (RFC 7515,
    appendix F).
    """

    document: Mapping[str, Any]
    signatures: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_text(cls, text: str | bytes) -> "Agreed":
        """Raises InvalidRequest for what is no protocol."""
        try:
            content = parse(text)
            signatures = tuple((s["site"], s["jws"]) for s in content.pop("signatures", ()))
            found = cls(content, signatures)
            sound = found._is_sound()
        except (
            *(ValueError, TypeError, KeyError, IndexError, AttributeError),
            *(OverflowError, RecursionError),
        ):
            sound = False
        if not sound:
            raise InvalidRequest(_NO_PROTOCOL)
        return found

    @property
    def canonical(self) -> bytes:
        """The bytes that are hashed and signed."""
        return canonical_json(self.document).encode()

    @property
    def digest(self) -> str:
        """SHA-256 in hexadecimal."""
        return sha256(self.canonical).hexdigest()

    @property
    def title(self) -> str:
        """What it calls itself, for a list; empty where that cannot be shown."""
        text = str(self.document.get("title", ""))[:_TITLE]
        return text if text.isprintable() else ""

    @property
    def sites(self) -> tuple[str, ...]:
        """The names of the sites, in the document's order."""
        return tuple(self.document["sites"])

    def key(self, site: str) -> str | None:
        """The fingerprint of the key that the site is to sign with, where the protocol says it."""
        found: str | None = self.document["sites"][site].get("key")
        return found

    def privacy(self, site: str) -> Privacy:
        """What the site is asked to spend; δ None: the protocol does not say."""
        own = self.document["sites"][site]
        delta = self.document.get("delta")
        epsilon = float(own.get("epsilon", self.document.get("epsilon")))
        return Privacy(epsilon, None if delta is None else float(delta))

    def question(self, site: str) -> dict[str, Any]:
        """The study's fields for a site: without the variables that it does not have."""
        asked = {k: v for k, v in self.document["study"].items() if v is not None}
        absent = set(self.document["sites"][site].get("without", ()))
        asked["variables"] = [v for v in asked["variables"] if not _names(v) & absent]
        if absent & _names(str(asked.get("main", ""))):
            del asked["main"]
        return {"kind": "study"} | asked

    def problems(self, site: str, schema: Schema) -> list[str]:
        """What in the public schema is not as agreed; empty where all is."""
        own = self.document["sites"][site]
        columns = {column.name: column for column in schema.columns}
        found = []
        for name, agreed in self.document["columns"].items():
            if name not in own.get("without", ()):
                bounds = own.get("bounds", {}).get(name, agreed.get("bounds"))
                found += _disagreements(name, columns.get(name), agreed, bounds)
        return found

    def _is_sound(self) -> bool:
        """Whether all that is read later has the form that it needs; TypeError and the like where
        it has not.
        """
        sites, columns = self.document["sites"], self.document["columns"]
        known = _only(self.document, _MEMBERS) and _only(self.document["study"], _STUDY)
        known = known and all(_only(own, _SITE) for own in sites.values())
        known = known and all(_only(one, _COLUMN) for one in columns.values())
        spent = [self.privacy(site).epsilon for site in sites]
        asked = [text for site in sites for text in self.question(site)["variables"]]
        named = [self.key(site) or "" for site in sites]
        bounds = [
            float(end)
            for own in sites.values()
            for ends in own.get("bounds", {}).values()
            for end in (ends[0], ends[1])
        ]
        stated = [float(end) for one in columns.values() for end in one.get("bounds") or (0.0, 1.0)]
        levels = [level for one in columns.values() for level in one.get("levels") or ()]
        texts = [*sites, *columns, *named, *asked, *levels]
        texts += [text for signature in self.signatures for text in signature]
        return (
            known
            and self.document["protocol"] == VERSION
            and len(sites) > 1
            and all(isfinite(x) for x in (*spent, *bounds, *stated))
            and all(isinstance(text, str) and text.isprintable() for text in texts)
            and len(self.canonical) <= LARGEST
        )


def canonical_json(value: Any) -> str:
    """RFC 8785: members by name, no blanks, numbers as ECMAScript writes them. Raises ValueError
    for what is no JSON. (Names beyond the basic plane are sorted by code point.)
    """
    if isinstance(value, Mapping):
        members = (f"{canonical_json(k)}:{canonical_json(v)}" for k, v in sorted(value.items()))
        return "{" + ",".join(members) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(canonical_json, value)) + "]"
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return _number(float(value))


def _number(x: float) -> str:
    if not isfinite(x):
        raise ValueError("no number of JSON")
    if x == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(x)).normalize().as_tuple()
    text, point = "".join(map(str, digits)), len(digits) + int(exponent)
    minus = "-" if sign else ""
    if len(text) <= point <= _MOST_DIGITS:
        return minus + text.ljust(point, "0")
    if 0 < point <= _MOST_DIGITS:
        return f"{minus}{text[:point]}.{text[point:]}"
    if -_MOST_ZEROS < point <= 0:
        return f"{minus}0.{'0' * -point}{text}"
    fraction = f".{text[1:]}" if text[1:] else ""
    return f"{minus}{text[0]}{fraction}e{point - 1:+d}"


def _only(members: Mapping[str, Any], known: frozenset[str]) -> bool:
    """Whether it says nothing that no reader of protocols knows: somebody has signed it."""
    return members.keys() <= known


def _names(text: str) -> set[str]:
    """Words of a formula's text, of which some are columns."""
    return {quoted or word for quoted, word in _WORD.findall(text)}


def _disagreements(
    name: str, column: Column | None, agreed: Mapping[str, Any], bounds: Any
) -> list[str]:
    if column is None:
        return [f"There is no column {name}."]
    found = []
    kind, levels = agreed.get("kind"), agreed.get("levels")
    if kind is not None and kind != column.shown_kind:
        found.append(f"{name} is {column.shown_kind}, not as agreed.")
    if levels is not None and tuple(levels) != column.levels:
        found.append(f"The levels of {name} are not those agreed, in their order.")
    if bounds is not None and (column.lower, column.upper) != tuple(map(float, bounds)):
        low, high = column.shown(column.lower), column.shown(column.upper)
        found.append(f"The bounds of {name} are {low} … {high}, not as agreed.")
    return found
