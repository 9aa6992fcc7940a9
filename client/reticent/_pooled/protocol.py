# SPDX-License-Identifier: Apache-2.0
"""A protocol: what sites agree on before any of them is asked. JSON:

    {"protocol": 1, "title": "…",
     "study": {"variables": ["y", "x", "C(g)"], "main": null, "where": null},
     "epsilon": 1.0, "delta": 1e-6,
     "columns": {"y": {"kind": "numeric", "bounds": [0, 100]}, "g": {"kind": "categorical",
                 "levels": ["a", "b"]}},
     "sites": {"north": {}, "south": {"epsilon": 0.5, "bounds": {"y": [0, 50]}, "without": ["x"]}},
     "signatures": [{"site": "north", "jws": "…"}]}

The digest is SHA-256 of the canonical JSON (RFC 8785) without `signatures`. Sites may have bounds,
an ε and missing variables of their own only where the protocol says so; `key` is the fingerprint of
the key that a site signs with. Signatures are made and verified by `reticent protocol` of a server.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from math import isfinite
from os import PathLike
from sys import float_info
from typing import Any

from reticent._errors import InvalidQuery
from reticent._json_file import json_of
from reticent._schema import Column, Schema

VERSION = 1
_MEMBERS = {"protocol", "title", "study", "epsilon", "delta", "columns", "sites"}
_STUDY = {"variables", "main", "where"}
_COLUMN = {"kind", "bounds", "levels"}
_SITE = {"epsilon", "bounds", "without", "key"}
_MOST_DIGITS = 21
"""Digits before the point beyond which a number is written with an exponent (ECMA-262)."""
_MOST_ZEROS = 6
"""Places after the point of the first digit beyond which it is, too."""
_FINITE = "A protocol's numbers are finite."
_OWN_BASIS = re.compile(r"\b(poly|bs)\(")
_RELEASED = re.compile(r"\b(lump|merge)\(")
_WORD = re.compile(r"`([^`]+)`|([A-Za-z_][A-Za-z0-9_.]*)")


@dataclass(frozen=True, slots=True)
class Protocol:
    """What all sites are asked. document: the JSON, with `signatures` or without.

    >>> protocol = reticent.protocol("protocol.json")
    >>> protocol.digest, protocol.sites
    """

    document: Mapping[str, Any]
    signatures: tuple[Mapping[str, Any], ...] = field(default=(), compare=False)

    @classmethod
    def from_json(cls, content: Any) -> "Protocol":
        """Raises InvalidQuery with what to change."""
        if not isinstance(content, Mapping) or content.get("protocol") != VERSION:
            raise InvalidQuery(f'A protocol is a JSON object with "protocol": {VERSION}.')
        body = {k: v for k, v in content.items() if k != "signatures"}
        found = cls(body, tuple(content.get("signatures") or ()))
        try:
            found._settled()
            found.canonical  # noqa: B018 - numbers that are none, and depths that nobody reads
        except RecursionError:
            raise InvalidQuery("The protocol is nested too deeply.") from None
        return found

    @property
    def canonical(self) -> bytes:
        """The bytes that are hashed and signed."""
        return _canonical(self.document).encode()

    @property
    def digest(self) -> str:
        """SHA-256 in hexadecimal."""
        return sha256(self.canonical).hexdigest()

    @property
    def sites(self) -> tuple[str, ...]:
        """The names of the data sets that the protocol asks, in its order."""
        return tuple(self.document["sites"])

    @property
    def signed(self) -> tuple[str, ...]:
        """The sites that have signed it: their servers have accepted it, and hold requests to it.

        >>> protocol.signed
        """
        return tuple(str(s.get("site")) for s in self.signatures)

    def epsilon(self, site: str) -> float:
        """What the site is asked to spend."""
        return float(self._site(site).get("epsilon", self.document["epsilon"]))

    def question(self, site: str) -> dict[str, Any]:
        """The study's fields for a site: without the variables that it does not have."""
        asked = {k: v for k, v in self.document["study"].items() if v is not None}
        absent = set(self._site(site).get("without", ()))
        asked["variables"] = [v for v in asked["variables"] if not _names(v) & absent]
        if absent & _names(str(asked.get("main", ""))):
            del asked["main"]
        return asked

    def problems(self, site: str, schema: Schema) -> list[str]:
        """What in a site's public schema does not agree; empty where all does."""
        own = self._site(site)
        absent = set(own.get("without", ()))
        columns = {c.name: c for c in schema}
        found = []
        for name, agreed in self.document["columns"].items():
            if name in absent:
                continue
            if name not in columns:
                found.append(
                    f"{site} has no column {name}; write it under sites.{site}.without, or leave "
                    "the site out."
                )
            else:
                bounds = own.get("bounds", {}).get(name, agreed.get("bounds"))
                found += _disagreements(site, columns[name], agreed, bounds)
        return found

    def _site(self, site: str) -> Mapping[str, Any]:
        if site not in self.document["sites"]:
            raise InvalidQuery(f"{site} is not in the protocol: its sites are {self.sites}.")
        found: Mapping[str, Any] = self.document["sites"][site]
        return found

    def _settled(self) -> None:
        """Raises InvalidQuery where the document cannot be a protocol of a pooled study."""
        if unknown := set(self.document) - _MEMBERS:
            raise InvalidQuery(f"A protocol has {', '.join(sorted(_MEMBERS))}, no {min(unknown)}.")
        study, sites = self.document.get("study"), self.document.get("sites")
        columns = self.document.get("columns")
        _check_study(study)
        if not isinstance(sites, Mapping) or len(sites) < 2:
            raise InvalidQuery('The protocol\'s "sites" are two or more, by name.')
        _check_columns(columns)
        for site, own in sites.items():
            if not isinstance(own, Mapping) or set(own) - _SITE:
                raise InvalidQuery(f"sites.{site} has only {', '.join(sorted(_SITE))}.")
            _spending(site, own.get("epsilon", self.document.get("epsilon")))
            self._same_bases(site, own)
        self._stated(self.document["columns"])

    def _stated(self, columns: Mapping[str, Any]) -> None:
        for text in self.document["study"]["variables"]:
            if _RELEASED.search(text):
                raise InvalidQuery(f"{text} depends on what a site has released: write levels out.")
            if not _names(text) & set(columns):
                raise InvalidQuery(f"The protocol's columns state nothing of {text}.")

    def _same_bases(self, site: str, own: Mapping[str, Any]) -> None:
        for text in self.document["study"]["variables"]:
            if _OWN_BASIS.search(text) and _names(text) & set(own.get("bounds", {})):
                raise InvalidQuery(
                    f"{text} is made of the bounds of its column, which are others at {site}: give "
                    "all sites the same, or use powers, such as I(x**2)."
                )


def _check_study(study: Any) -> None:
    named = study.get("variables") if isinstance(study, Mapping) else None
    if not isinstance(named, list | tuple) or not named:
        raise InvalidQuery('The protocol\'s "study" names its "variables".')
    if not all(isinstance(text, str) for text in named):
        raise InvalidQuery('The protocol\'s "variables" are texts of the formula grammar.')
    if unknown := set(study) - _STUDY:
        raise InvalidQuery(
            f"A pooled study has {', '.join(sorted(_STUDY))}, not {', '.join(sorted(unknown))}: "
            "filled cells and groups differ by site."
        )


def _check_columns(columns: Any) -> None:
    if not isinstance(columns, Mapping):
        raise InvalidQuery('The protocol\'s "columns" state kinds, bounds and levels.')
    for name, agreed in columns.items():
        if not isinstance(agreed, Mapping) or set(agreed) - _COLUMN:
            raise InvalidQuery(f"columns.{name} has only {', '.join(sorted(_COLUMN))}.")


def protocol(source: str | PathLike[str] | Mapping[str, Any]) -> Protocol:
    """A protocol from a file of JSON, or a mapping. Raises InvalidQuery, OSError."""
    if isinstance(source, Mapping):
        return Protocol.from_json(source)
    return Protocol.from_json(json_of(source, "a protocol"))


def _canonical(value: Any) -> str:
    """RFC 8785: members by name, no blanks, numbers as ECMAScript writes them. Raises InvalidQuery
    for what is no JSON. (Names beyond the basic plane are sorted by code point.)
    """
    if isinstance(value, Mapping):
        members = (f"{_canonical(k)}:{_canonical(v)}" for k, v in sorted(value.items()))
        return "{" + ",".join(members) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_canonical, value)) + "]"
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    try:
        return _number(float(value))
    except OverflowError:
        raise InvalidQuery(_FINITE) from None


def _number(x: float) -> str:
    if not isfinite(x):
        raise InvalidQuery(_FINITE)
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


def _spending(site: str, epsilon: Any) -> None:
    if not isinstance(epsilon, int | float) or not 0 < epsilon <= float_info.max:
        raise InvalidQuery(f'{site}: give a positive "epsilon", for all sites or its own.')


def _names(text: str) -> set[str]:
    """Words of a formula's text, of which some are columns."""
    return {quoted or word for quoted, word in _WORD.findall(text)}


def _disagreements(site: str, column: Column, agreed: Mapping[str, Any], bounds: Any) -> list[str]:
    name = column.name
    found = []
    if column.kind != agreed.get("kind", column.kind):
        found.append(f"{site}: {name} is {column.kind}, agreed is {agreed['kind']}.")
    levels = agreed.get("levels")
    if levels is not None and tuple(levels) != column.levels:
        found.append(
            f"{site}: the levels of {name} are {', '.join(column.levels) or 'none'}, agreed are "
            f"{', '.join(levels)} in this order."
        )
    if bounds is not None and (column.lower, column.upper) != tuple(map(float, bounds)):
        found.append(
            f"{site}: the bounds of {name} are {column.domain}, agreed are "
            f"{bounds[0]:g} … {bounds[1]:g}; agree on them, or write sites.{site}.bounds.{name}."
        )
    return found
