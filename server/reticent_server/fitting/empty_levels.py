# SPDX-License-Identifier: Apache-2.0
"""Levels of factors that may have no record, by released counts: a fit leaves their columns out.

A level whose released number of records is not above its noise (fitting.trust.clear) has no
coefficient that the fit could tell, and its column, which may be 0 for every record, would take the
others with it: coordinates, curvature and noise of a fit are of all columns together. So its
columns are left out of the design, those of its interactions too, and the few records that it may
have are out of use. Where it is the reference, the next level that has records is the reference in
its place. Numbers come from the profile that the coding is made of: the curator's, so that a plan
knows, or the query's own, which is released before anything else of the fit. The design that is
fitted is a function of released values, and every later step is one of a record and of what was
released before (post-processing, adaptive composition): nothing is charged for it.

A column in which no level's number is above its noise stays as it is, and so does one with
contrasts that compare several levels (Sum, Helmert).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from reticent_server.domain.design import (
    AllOf,
    AnyOf,
    Coded,
    ColumnValue,
    Compare,
    Design,
    EventTime,
    Expression,
    Indicator,
    Not,
    Predicate,
    Term,
)
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.trust import clear

_LEFT_OUT = (
    "No coefficient, as the released number of records of a level is not above its noise, so that "
    "there may be none: {terms}."
)
_MOVED = (
    "The reference level of {column} may have no record: {level} is the reference in its place."
)


@dataclass(frozen=True, slots=True)
class Fitted:
    """The design that is fitted; and what a reply says of it: its terms and those that are left
    out, in the order of the question, and sentences."""

    design: Design
    left_out: "LeftOut | None" = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Terms of a question that a fit leaves out. names: of all coefficients that a reply has, those
    without a value among them; lost: these; used: which records of the question are; None: all."""

    names: tuple[str, ...]
    lost: frozenset[str]
    said: tuple[str, ...]
    used: Predicate | None = None


@dataclass(frozen=True, slots=True)
class _Factor:
    """A column's dummies. columns: of each term that has one of them, the stored values at which
    that is 1, and the term's other factors. full, empty: the values that have records, and those
    that may have none."""

    columns: dict[str, tuple[frozenset[float], tuple[Expression, ...]]]
    full: frozenset[float]
    empty: frozenset[float]

    @property
    def lost(self) -> dict[str, frozenset[float]]:
        """The terms that may be 0 for every record."""
        return {name: codes for name, (codes, _) in self.columns.items() if codes <= self.empty}

    @property
    def reference(self) -> frozenset[float]:
        """The values without a column of their own, where others have records and these may have
        none; else none."""
        own = [codes for codes, others in self.columns.values() if not others]
        rest = (self.full | self.empty) - frozenset[float]().union(*own)
        return rest if own and rest <= self.empty else frozenset()

    def unused(self, *, moved: bool) -> frozenset[float]:
        """The values that no column has. moved: whether the reference is another."""
        rest = self.reference if moved else frozenset[float]()
        return rest.union(*self.lost.values())

    @property
    def following(self) -> frozenset[float]:
        """The first level with a column of its own that has records."""
        return next(c for c, others in self.columns.values() if not others and c & self.full)

    @property
    def replaced(self) -> list[str]:
        """The terms that the level after a reference without records has, where it has them beside
        what spans their sum."""
        if not self.reference:
            return []
        in_full = {others for codes, others in self.columns.values() if codes <= self.reference}
        return [
            name
            for name, (codes, others) in self.columns.items()
            if codes == self.following and others not in in_full
        ]


def without_empty_levels(design: Design, facts: DatasetFacts) -> Fitted:
    """The design without columns of levels that may have no record."""
    factors = _factors(design, facts)
    lost = {term: name for name, factor in factors.items() for term in factor.lost}
    moved = {
        name: _text(facts, name, factor.following)
        for name, factor in factors.items()
        if factor.reference and design.intercept
    }
    if not (lost or moved) or not (design.intercept or len(lost) < len(design.terms)):
        return Fitted(design)
    replaced = set(lost).union(*(factors[name].replaced for name in moved)) - set(lost)
    unused = [
        Compare(name, "==", code)
        for name, factor in factors.items()
        for code in sorted(factor.unused(moved=name in moved))
    ]
    said = [_LEFT_OUT.format(terms=", ".join(lost))] if lost else []
    said += [_MOVED.format(column=name, level=level) for name, level in moved.items()]
    fitted = replace(
        design,
        terms=tuple(t for t in design.terms if t.name not in lost and t.name not in replaced),
        baselines=tuple((name, moved.get(name, level)) for name, level in design.baselines),
    )
    used = Not(AnyOf(tuple(unused))) if design.persons is None else None
    if used is not None:
        where = used if design.where is None else AllOf((design.where, used))
        fitted = replace(fitted, where=where)
    names = tuple(name for name in design.names if name not in replaced)
    return Fitted(fitted, LeftOut(names, frozenset(lost), tuple(said), used))


def places_of(names: Sequence[str], among: Sequence[str]) -> FloatArray:
    """(names, among) 1 where a name is the other one: coefficients of a fit without empty levels in
    their places among those that were asked for, 0 elsewhere."""
    own = {name: place for place, name in enumerate(among)}
    E = np.zeros((len(names), len(among)))
    for place, name in enumerate(names):
        if name in own:
            E[place, own[name]] = 1.0
    return E


_LISTS: dict[str, Any] = {
    "coefficients": None,
    "standard_errors": None,
    "confidence_intervals": (None, None),
    "p_values": None,
    "privacy_standard_errors": None,
    "estimable": False,
    "degrees_of_freedom": None,
    "design_effects": None,
}
"""Members of a reply with a value for each coefficient, and what they have of one that was left
out."""


def with_left_out(
    result: dict[str, Any], left_out: LeftOut | None, names: Sequence[str] | None = None
) -> dict[str, Any]:
    """The members of a reply with the terms that were left out in their places: null, and no part
    of any direction or weight. names: of all coefficients, where a term has several."""
    if left_out is None:
        return result
    columns = [name for name in left_out.names if name not in left_out.lost]
    names = left_out.names if names is None else names
    spread, over = _spreading(result["terms"], names), _spreading(columns, left_out.names)
    found = {name: spread(result[name], none) for name, none in _LISTS.items() if name in result}
    nothing = [None] * len(names)
    rows = [spread(row, None) for row in result["covariance"]]
    directions = [{**d, "vector": spread(d["vector"], 0.0)} for d in result["directions"]]
    weighting = result["weighting"]
    if weighting["matrix"]:
        matrix = [over(row, 0.0) for row in weighting["matrix"]]
        weighting = {**weighting, "matrix": matrix}
    if "cut" in result:
        cut = result["cut"]
        found["cut"] = replace(cut, allowances=spread(cut.allowances, None))
    return result | {
        **found,
        "terms": list(names),
        "covariance": spread(rows, nothing),
        "directions": directions,
        "weighting": weighting,
        "warnings": [*left_out.said, *result["warnings"]],
    }


def _spreading(
    have: Sequence[str], names: Sequence[str]
) -> Callable[[Sequence[Any], Any], list[Any]]:
    """Puts values of `have` in their places among `names`, and what is missing elsewhere."""
    places = {name: place for place, name in enumerate(have)}

    def spread(values: Sequence[Any], missing: Any) -> list[Any]:
        return [values[places[name]] if name in places else missing for name in names]

    return spread


def full_values(facts: DatasetFacts, name: str) -> frozenset[float] | None:
    """The values of a column that have records by its released counts; None where that is not
    known, or all have."""
    known = _counted(facts, name)
    return known[0] if known is not None and known[1] else None


def _factors(design: Design, facts: DatasetFacts) -> dict[str, _Factor]:
    """The columns of levels of a design whose released counts tell which have records."""
    columns: dict[str, dict[str, tuple[frozenset[float], tuple[Expression, ...]]]] = {}
    for term in design.terms:
        parts = _parts(term, design)
        for place, part in enumerate(parts):
            coded = _codes(part, facts)
            if coded is not None:
                others = (*parts[:place], *parts[place + 1 :])
                columns.setdefault(coded[0], {})[term.name] = (coded[1], others)
    found = {}
    for name, terms in columns.items():
        known = None if _contrasted(design, name) else _counted(facts, name)
        if known is not None:
            found[name] = _Factor(terms, *known)
    return found


def _counted(facts: DatasetFacts, name: str) -> tuple[frozenset[float], frozenset[float]] | None:
    """The values of a column that have records by its released counts, and those that may have
    none; None where none is above its noise."""
    column = facts.schema.column(name)
    known = facts.profile.columns.get(name) if facts.profile else None
    if column is None or known is None or known.counts is None or known.count_sd is None:
        return None
    codes = {known.first + k: clear(c, known.count_sd) for k, c in enumerate(known.counts)}
    found = {code: ok for code, ok in codes.items() if column.admits(code, code)}
    full = frozenset(code for code, ok in found.items() if ok)
    return (full, frozenset(found) - full) if full else None


def _parts(term: Term, design: Design) -> tuple[Expression, ...]:
    """The factors of a term, of a column that is made of persons' rows those that it is made of."""
    if design.persons is None:
        return term.factors
    made = {each.name: each.term.factors for each in design.persons.made}
    inner = (
        made.get(factor.column, (factor,)) if isinstance(factor, ColumnValue) else (factor,)
        for factor in term.factors
    )
    return tuple(chain.from_iterable(inner))


def _codes(factor: Expression, facts: DatasetFacts) -> tuple[str, frozenset[float]] | None:
    """A column, and its stored values at which a dummy of it is 1; None of what is no dummy."""
    match factor:
        case Indicator(column, code):
            return column, frozenset({code})
        case Coded(column, codes, values, None) if set(values) <= {0.0, 1.0}:
            return column, frozenset(c for c, v in zip(codes, values, strict=True) if v)
        case ColumnValue(column) if (of := facts.schema.column(column)) and of.is_dummy:
            return column, frozenset({1.0})
        case EventTime(time, None, low, high) if low == high:
            return time, frozenset({low})
    return None


def _contrasted(design: Design, name: str) -> bool:
    """Whether a column has contrasts that compare several of its levels."""
    coded = (f for term in design.terms for f in _parts(term, design) if isinstance(f, Coded))
    return any(f.column == name and not set(f.values) <= {0.0, 1.0} for f in coded)


def _text(facts: DatasetFacts, name: str, codes: frozenset[float]) -> str:
    column = facts.schema.column(name)
    return ", ".join(column.shown(c) if column else f"{c:g}" for c in sorted(codes))
