# SPDX-License-Identifier: Apache-2.0
"""What is asked: tables of every kind of column, and the values of every field, from the interface.

A value is tried in the contexts that the kinds' own examples are: the example with the field put to
the value, on one table after the other, until a plan is made. Values are

- of an enumeration, a constant or a boolean: each of them; where null is allowed, none;
- of a number: its least and greatest value, and those of the examples;
- of a column's name: a column of each kind, and those of the examples;
- of a condition: one that everybody, few and nobody meets;
- of a formula: the examples', with a term of each form of the grammar added;
- of features of persons: the columns of the examples again, with a feature of each function;
- of a question inside a question: the examples of its kinds, with each of their choices.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, get_args

import numpy as np

from reticent_server.domain.persons import FeatureFunction
from reticent_server.formula.contrasts import CONTRASTS
from reticent_server.formula.values import FUNCTIONS
from support.kinds.examples import QUERIES
from support.seeds import seeded

Json = dict[str, Any]
ALL = slice(None)

COLUMNS = """\
  y: {kind: numeric, lower: -10, upper: 10}
  x: {kind: numeric, lower: -5, upper: 5}
  k: {kind: integer, lower: 0, upper: 9}
  g: {kind: categorical, levels: [a, b, c]}
  b: {kind: boolean}
  m: {kind: numeric, lower: 0, upper: 1, missing: [""]}
  o: {kind: ordered, levels: [low, middle, high]}
  d: {kind: date, lower: 2020-01-01, upper: 2024-12-31}
  w: {kind: numeric, lower: 0.5, upper: 4, role: weight}
  i: {kind: integer, lower: 0, upper: 20, missing: [""]}
  j: {kind: integer, lower: 0, upper: 11}
  h: {kind: categorical, levels: [p, q], missing: [""]}
  v: {kind: boolean, missing: [""]}
"""
"""The columns of the examples' table (kinds.example) first, under their names; then one of each
other kind, one with missing cells of each, weights, and a second column of clusters."""

NAMES = tuple(line.strip().partition(":")[0] for line in COLUMNS.splitlines())
EVERYBODY, FEW, NOBODY = "x >= -5", "x > 2", "x > 4.9"
CONDITIONS = (EVERYBODY, FEW, NOBODY)


@dataclass(frozen=True, slots=True)
class Table:
    """A data set of the walk: rows of a unit, at most; whether it has a profile."""

    name: str
    rows: int
    units: int
    is_profiled: bool

    @property
    def schema(self) -> str:
        """The schema file."""
        unit = f"unit: {{column: id, max_rows: {self.rows}}}\n" if self.rows > 1 else ""
        return f"description: Walked\n{unit}columns:\n{COLUMNS}"

    def csv(self) -> str:
        """The rows: y goes with x, k is a count, b a yes or no, each as its model has them."""
        rng = seeded(self.rows)
        lines = [",".join(("id", *NAMES))]
        for unit in range(self.units):
            own = rng.normal(scale=0.7)
            rows = (_cells(rng, own) for _ in range(1 + unit % self.rows))
            lines += [",".join(map(str, (f"u{unit}", *cells))) for cells in rows]
        return "\n".join(lines) + "\n"


def _cells(rng: np.random.Generator, own: float) -> Iterator[Any]:
    """One row of a unit, whose rows have `own` in common."""
    x = own + rng.normal(scale=0.7)
    yield f"{1 + 2 * x + rng.normal():.3f}"
    yield f"{x:.3f}"
    yield min(rng.poisson(np.exp(1.2 + 0.2 * x)), 9)
    yield "abc"[rng.integers(3)]
    yield int(rng.random() < 1 / (1 + np.exp(-0.7 * x)))
    yield _or_missing(rng, f"{rng.beta(3, 3):.3f}")
    yield ("low", "middle", "high")[rng.integers(3)]
    yield f"{2020 + rng.integers(5)}-{1 + rng.integers(12):02}-{1 + rng.integers(28):02}"
    yield f"{rng.uniform(0.5, 4):.2f}"
    yield _or_missing(rng, min(rng.poisson(6 + np.clip(x, -3, 3)), 20))
    yield rng.integers(12)
    yield _or_missing(rng, "pq"[rng.integers(2)])
    yield _or_missing(rng, rng.integers(2))


def _or_missing(rng: np.random.Generator, cell: Any) -> Any:
    return "" if rng.random() < 0.15 else cell


TABLES = tuple(
    Table(f"{word}{'_profiled' if is_profiled else ''}", rows, units, is_profiled)
    for word, rows, units in (("rows", 1, 1200), ("three", 3, 500), ("eight", 8, 300))
    for is_profiled in (False, True)
)
"""Units of 1, 3 and 8 rows, with and without a profile."""

EPSILONS = (4.0, 1.0)
DELTA = 1e-6

TERMS = (
    *(f"C(g, {name})" for name in CONTRASTS),
    *(f"{name}(w)" for name in FUNCTIONS),
    *(name if name in "ymwxkijbvd" else f"C({name})" for name in NAMES[2:]),
    *('C(g, ref="b")', "I(x**2)", "poly(x, 2)", "bs(x, knots=[0])", "x:b", "x*C(o)", "mean(x)"),
)
"""A term of each form of the formulas' grammar, and of each kind of column."""

_SUBJECTS: Mapping[str, str] = {
    **dict.fromkeys(("any", "all", "share"), "b"),
    **dict.fromkeys(("first", "last"), "y, by=d"),
    "count": "",
}
_FEATURES: Mapping[str, str] = {
    "y": "mean(y, none=0)",
    "x": "last(x, by=d, none=0)",
    "k": "max(k, none=0)",
    "g": 'first(g, by=d, none="a")',
    "b": "any(b)",
    "m": "mean(m)",
    "o": "last(o, by=d)",
    "d": "max(d)",
    "w": "mean(w)",
    "i": "max(i)",
    "j": "max(j, none=0)",
    "h": "first(h, by=d)",
    "v": "all(v)",
}
"""The columns again, in a table with one row a person."""

PERSONS: Sequence[Mapping[str, str]] = tuple(
    dict(_FEATURES) | {"y": f"{name}({_SUBJECTS.get(name, 'y')})"}
    for name in get_args(FeatureFunction)
)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, about which table, under which rule of accounts, at which ε."""

    table: str
    query: Json
    rule: str
    epsilon: float

    @property
    def body(self) -> Json:
        """As it is sent."""
        privacy = {"epsilon": self.epsilon, "delta": DELTA}
        return {"dataset": self.table, "query": self.query, "privacy": privacy}

    def __str__(self) -> str:
        return json.dumps(self.body | {"rule": self.rule})


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a field of a kind; None: the field is left out. is_choice: it is one of a list
    that the interface enumerates, so that there is a question that takes it."""

    kind: str
    field: str
    value: Any
    is_choice: bool

    def put(self, question: Json) -> Json:
        """The question with the field at the value."""
        rest = {k: v for k, v in question.items() if k != self.field}
        return rest if self.value is None else rest | {self.field: self.value}


class Interface:
    """The kinds, their fields and the fields' values, of the server's OpenAPI document."""

    def __init__(self, document: Json) -> None:
        self._choices: dict[str, set[str]] = {}
        self._schemas: Json = document["components"]["schemas"]
        query = self._schemas["PlanBody"]["properties"]["query"]
        self._kinds = {
            name: ref.rpartition("/")[2] for name, ref in query["discriminator"]["mapping"].items()
        }
        self.examples: dict[str, list[Json]] = {name: [] for name in self._kinds}
        for example in QUERIES.values():
            plain: Json = json.loads(json.dumps(example))
            self.examples[plain["kind"]].append(plain)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self._kinds)

    def values(self, kind: str, *, spared: int = 1) -> list[Value]:
        """Every value of every field of a kind, each once. spared: of columns' names, terms of
        formulas and features of persons, which no field enumerates, one in so many: another field
        and another kind have others."""
        found: list[Value] = []
        for place, (field, schema) in enumerate(self._fields(kind).items()):
            part = slice((self.kinds.index(kind) + place) % spared, None, spared)
            made = list(self._of(schema, field, kind, part))
            made += [(None, True)] if _NULL in schema.get("anyOf", ()) else []
            seen: dict[str, Value] = {}
            for value, is_choice in made:
                seen.setdefault(json.dumps(value), Value(kind, field, value, is_choice))
            found += seen.values()
        return found

    def pairs(self, kind: str) -> Iterator[tuple[Value, Value]]:
        """Every pair of values of two fields of a kind."""
        yield from (
            (one, other)
            for one, other in combinations(self.values(kind), 2)
            if one.field != other.field and (one.value, other.value) != (None, None)
        )

    def contexts(self, value: Value) -> list[Json]:
        """The kind's examples with the value put in: those that have it first, then those that have
        another value of the field."""
        examples = self.examples[value.kind]
        ranked = sorted(
            examples,
            key=lambda each: (each.get(value.field) != value.value, value.field not in each),
        )
        return list({json.dumps(value.put(each)): value.put(each) for each in ranked}.values())

    def about(self, table: Table, query: Json) -> list[Json]:
        """The question, as it may be asked about a table: of persons with several rows about them,
        and about their features."""
        if table.rows == 1 or "persons" in query:
            return [query]
        return [query, query | {"persons": dict(_FEATURES)}]

    def beside(self, value: Value) -> Iterator[Json]:
        """The value in the first context, beside each value of each other field."""
        for other in self.values(value.kind):
            if other.field != value.field:
                yield other.put(self.contexts(value)[0])

    def names(self, kind: str) -> tuple[str, ...]:
        """The names of a kind's fields."""
        return tuple(self._fields(kind))

    def choices(self, kind: str) -> set[str]:
        """The words that a kind's fields enumerate."""
        if kind not in self._choices:
            words = (v.value for v in self.values(kind) if v.is_choice)
            self._choices[kind] = {each for each in words if isinstance(each, str)}
        return self._choices[kind]

    def _fields(self, kind: str) -> Json:
        properties: Json = self._schemas[self._kinds[kind]]["properties"]
        return {name: schema for name, schema in properties.items() if name != "kind"}

    def _of(self, schema: Json, field: str, kind: str, part: slice) -> Iterator[tuple[Any, bool]]:
        """(value, whether it is enumerated) of a field's type."""
        for each in schema.get("anyOf", ()):
            yield from self._of(each, field, kind, part)
        if "discriminator" in schema:
            yield from self._questions(schema["discriminator"]["mapping"])
        if "$ref" in schema:
            named = self._schemas[schema["$ref"].rpartition("/")[2]]
            yield from self._of(named, field, kind, part)
        for choice in schema.get("enum", [schema["const"]] if "const" in schema else ()):
            yield choice, True
        made = _MADE.get(schema.get("type", ""))
        if made is not None and "enum" not in schema and "const" not in schema:
            own = self._exemplary(field, kind, schema)
            every = (*own, *made(schema, field, own, part))
            yield from ((each, schema["type"] == "boolean") for each in every)

    def _exemplary(self, field: str, kind: str, schema: Json) -> list[Any]:
        """The values of a field in the examples: of its kind, and of a column's name or a number
        those of other kinds."""
        is_formula = schema.get("maxLength", 0) > _LONGEST_NAME
        of = [kind] if is_formula else [kind, *self._kinds]
        found = [each[field] for name in of for each in self.examples[name] if field in each]
        fitting = _PYTHON[schema["type"]]
        return [each for each in found if isinstance(each, fitting)]

    def _questions(self, mapping: Mapping[str, str]) -> Iterator[tuple[Any, bool]]:
        """Questions inside a question: the examples, and the first with each choice."""
        for name in mapping:
            yield from ((each, False) for each in self.examples[name])
            for value in self.values(name):
                if value.is_choice and value.value is not None:
                    yield self.contexts(value)[0], False


_BOUNDS = {"minimum": 0, "exclusiveMinimum": 1, "maximum": 0, "exclusiveMaximum": -1}
"""Of a number, and how far within a bound its end is."""
_NULL = {"type": "null"}
_LONGEST_NAME = 256
"""Characters of a column's name, or of a level, at most; a formula may be longer."""
_PYTHON: Mapping[str, Any] = {
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "array": list,
    "object": dict,
}


def _text(schema: Json, field: str, own: Sequence[Any], part: slice) -> Iterator[Any]:
    if schema.get("maxLength", 0) <= _LONGEST_NAME:
        yield from NAMES[part]
    elif field == "where":
        yield from CONDITIONS
    else:
        for text in own[:1]:
            response, tilde, terms = text.partition(" ~ ")
            yield from (f"{text} + {term}" if tilde else term for term in TERMS[part])
            yield from (f"{response} ~ 0 + {terms}",) if tilde else ()
        for name in NAMES[part] if any("~" in text for text in own) else ():
            yield f"{name} ~ x"


def _number(schema: Json, field: str, own: Sequence[Any], part: slice = ALL) -> Iterator[Any]:
    whole = schema["type"] == "integer"
    for bound, step in (
        ("minimum", 0),
        ("exclusiveMinimum", 1),
        ("maximum", 0),
        ("exclusiveMaximum", -1),
    ):
        if bound in schema:
            end = schema[bound] + step * (1 if whole else 1e-3)
            yield int(end) if whole else float(end)
    if not own and "minimum" not in schema:
        yield 1 if whole else 0.5


def _flag(schema: Json, field: str, own: Sequence[Any], part: slice = ALL) -> Iterator[Any]:
    yield from (False, True)


def _list(schema: Json, field: str, own: Sequence[Any], part: slice = ALL) -> Iterator[Any]:
    of = schema.get("prefixItems", [schema.get("items", {})])[0]
    if of.get("type") == "array":
        yield from _sets(of) if of.get("items", {}).get("type") == "string" else _matrices()
    elif of.get("type") == "string" and of.get("maxLength", 0) <= _LONGEST_NAME:
        size = schema.get("minItems", 2)
        yield from (list(NAMES[at : at + size]) for at in range(0, len(NAMES) - size + 1, size))
        yield list(NAMES[: schema.get("maxItems", len(NAMES))])
    elif of.get("type") == "string":
        for texts in own[:1]:
            yield from ([*texts, term] for term in TERMS[part])
    elif own and "prefixItems" not in schema:
        yield own[0][: max(1, schema.get("minItems", 1))]
    else:
        size = schema.get("minItems", 2)
        yield from ([end] * size for end in _number({"type": "number", **of}, field, ()))


def _sets(of: Json) -> Iterator[Any]:
    yield from ([list(NAMES[at : at + 2])] for at in range(0, 6, 2) if of.get("maxItems", 2) >= 2)


def _matrices() -> Iterator[Any]:
    """Bounds of up to four numbers, and covariances."""
    for size in range(1, 5):
        yield [[-20.0, 20.0]] * size
        yield (0.01 * np.eye(size)).tolist()


def _features(schema: Json, field: str, own: Sequence[Any], part: slice = ALL) -> Iterator[Any]:
    yield from map(dict, PERSONS[part])


_MADE: Mapping[str, Any] = {
    "string": _text,
    "number": _number,
    "integer": _number,
    "boolean": _flag,
    "array": _list,
    "object": _features,
}
