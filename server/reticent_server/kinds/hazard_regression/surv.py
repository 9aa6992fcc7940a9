# SPDX-License-Identifier: Apache-2.0
"""`Surv(time, event) ~ x + C(g)`: the formula of a hazard regression, as a design and the columns
of follow-up."""

from dataclasses import dataclass, replace
from itertools import pairwise
from math import isfinite

import numpy as np

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Column, Schema
from reticent_server.errors import InvalidFormula, InvalidQuery
from reticent_server.fitting.special_columns import offset_design
from reticent_server.formula import mask_design, parse_formula
from reticent_server.formula.labels import quote
from reticent_server.formula.limits import Limits
from reticent_server.formula.parse import column_of
from reticent_server.formula.tokens import Cursor
from reticent_server.kinds.hazard_regression.strata import (
    MOST_STRATA,
    ONE_STRATUM,
    with_indicators,
    without_strata,
)
from reticent_server.kinds.shared.columns import declared
from reticent_server.kinds.shared.follow_up.question import FollowUpGroups
from reticent_server.kinds.shared.tables import level_axis

MOST_INTERVALS = 20
"""Of a baseline: each is a coefficient of the fit, and 16 at n = 5,000, epsilon = 1 made slopes
worse already."""
_FEWEST = 4
"""Intervals where the question names none: hazards that change within wider ones go unseen (5 moved
slopes by one of Cox's standard errors at n = 5,000)."""
_USUAL, _USUAL_N = 8, 5000.0
"""Intervals at that n; they grow with n^(1/4), as what they leave unseen falls with their square
and errors with sqrt(n)."""
_SIGNAL_AN_INTERVAL = 100.0
"""n sqrt(2 rho) for each interval: events in it, about n/16, are then at least three sd of their
noise."""

_FORM = (
    "write Surv(time, event), or Surv(start, time, event) where persons come under observation "
    "later, and '~'"
)


@dataclass(frozen=True, slots=True)
class Hazards:
    """A question's public terms. design: its response is the event; columns: all that is read.

    start: the column when a person comes under observation, None: 0. cuts: (J,) ends of the
    intervals. whole: the design with the strata's indicators as its last terms, the design itself
    without strata.
    """

    design: Design
    time: str
    event: str
    start: str | None
    cuts: tuple[float, ...]
    strata: FollowUpGroups = ONE_STRATUM
    beside: Design | None = None

    @property
    def whole(self) -> Design:
        """What the whitening is of."""
        return self.design if self.beside is None else self.beside


def parse_hazards(
    text: str,
    facts: DatasetFacts,
    cuts: tuple[float, ...] | None,
    where: str | None,
    rho: float,
    *,
    offset: str | None = None,
    exposure: str | None = None,
    strata: str | None = None,
) -> Hazards:
    """The question in public terms; rho: of the whole fit. Raises InvalidFormula or InvalidQuery
    with what to change."""
    text, named = without_strata(text)
    if named is not None and strata not in {None, named}:
        raise InvalidQuery("Give strata once: in the formula, or as the field.")
    strata = strata or named
    names, tilde = _left_side(text, facts.schema)
    time, event = names[-2:]
    start = names[0] if len(names) == 3 else None
    measured = _checked_columns(facts, start, time, event)
    head = quote(event).ljust(tilde)[:tilde] if len(quote(event)) <= tilde else quote(event)
    design = parse_formula(head + text[tilde:], facts.schema, where, profile=facts.profile)
    if not design.intercept:
        raise InvalidFormula(
            "Leave 0 and -1 out of the formula: the baseline hazard takes the intercept's place."
        )
    if not design.terms:
        raise InvalidFormula(
            "Name at least one term after '~'; without any, ask for a survival_curve."
        )
    if {start, time} & _read_by_terms(design):
        raise InvalidFormula("The columns of Surv(...) cannot be among the terms.")
    if {offset, exposure} & set(names):
        raise InvalidQuery("The columns of Surv(...) cannot be the offset or the exposure.")
    design = offset_design(design, facts.schema, offset, exposure)
    design = _reading(design, facts.schema, names, where)
    ends = _default_cuts(facts, measured, rho) if cuts is None else _checked_cuts(cuts, measured)
    if strata is None:
        return Hazards(design, time, event, start, ends)
    groups = _strata(facts, strata, {*names, offset, exposure} | _read_by_terms(design))
    beside = parse_formula(
        head + with_indicators(text[tilde:], strata), facts.schema, where, profile=facts.profile
    )
    beside = offset_design(beside, facts.schema, offset, exposure)
    beside = _reading(beside, facts.schema, (*names, strata), where)
    if beside.terms[: len(design.terms)] != design.terms:
        raise InvalidFormula("The strata cannot be among the terms.")
    return Hazards(replace(beside, terms=design.terms), time, event, start, ends, groups, beside)


def _reading(design: Design, schema: Schema, names: tuple[str, ...], where: str | None) -> Design:
    """The design with the columns that are read beside its terms."""
    mask = mask_design(names, schema, where)
    columns = tuple(dict.fromkeys((*design.columns, *mask.columns)))
    missing = tuple(dict.fromkeys((*design.missing_columns, *mask.missing_columns)))
    return replace(design, columns=columns, missing_columns=missing)


def reading(asked: Hazards, schema: Schema, name: str) -> Hazards:
    """The question that reads one more column, whose missing cells leave a record out."""
    beside = None if asked.beside is None else _reading(asked.beside, schema, (name,), None)
    return replace(asked, design=_reading(asked.design, schema, (name,), None), beside=beside)


def _strata(facts: DatasetFacts, name: str, used: set[str | None]) -> FollowUpGroups:
    """The levels of the column."""
    if name in used:
        raise InvalidQuery("strata must be a column that the question does not use otherwise.")
    axis = level_axis(declared(facts, name))
    if not 1 < axis.size <= MOST_STRATA:
        raise InvalidQuery(f"strata must be a column of two to {MOST_STRATA} levels.")
    return FollowUpGroups(name, axis.stored, axis.levels)


def _left_side(text: str, schema: Schema) -> tuple[tuple[str, ...], int]:
    """The columns' names, two or three, and how many characters stand before '~'."""
    cursor = Cursor(text, schema, "formula", Limits())
    if not cursor.at_word("Surv"):
        cursor.fail(_FORM)
    cursor.advance()
    cursor.expect("(")
    names = [cursor.column().name]
    while cursor.at(","):
        cursor.advance()
        names.append(cursor.column().name)
    cursor.expect(")")
    if not cursor.at("~") or len(names) not in {2, 3}:
        cursor.fail(_FORM)
    return tuple(names), cursor.token.position - 1


def _checked_columns(facts: DatasetFacts, start: str | None, time: str, event: str) -> Column:
    """The time column."""
    named = [name for name in (start, time, event) if name is not None]
    if len(set(named)) < len(named):
        raise InvalidQuery("The columns of Surv(...) must be different.")
    if not declared(facts, event).is_dummy:
        raise InvalidQuery(
            "event must be a boolean column, or an integer one with bounds [0, 1]: 1 where it "
            "was seen."
        )
    for column in [declared(facts, name) for name in named[:-1]]:
        if not column.kind.is_number or column.is_dummy:
            raise InvalidQuery("time and start must be numeric or integer columns.")
        if column.lower < 0 or column.upper <= 0:
            raise InvalidQuery(
                "time and start must have declared bounds that are not below 0, and an upper one "
                "above 0."
            )
    return declared(facts, time)


def _read_by_terms(design: Design) -> set[str]:
    """Columns that the terms read."""
    return {column_of(factor) for term in design.terms for factor in term.factors}


def _default_cuts(facts: DatasetFacts, column: Column, rho: float) -> tuple[float, ...]:
    """Ends at equal shares of the profile's quantiles of `time`, or at equal steps; the last is the
    declared bound."""
    signal = facts.n * float(np.sqrt(2 * rho)) / facts.schema.unit.max_rows
    most = min(round(_USUAL * (facts.n / _USUAL_N) ** 0.25), MOST_INTERVALS)
    wanted = max(_FEWEST, min(most, int(signal / _SIGNAL_AN_INTERVAL)))
    shares = np.arange(1, wanted) / wanted
    profile = facts.profile.columns.get(column.name) if facts.profile else None
    if profile is not None and profile.quantiles:
        inner = np.interp(shares, profile.probabilities, profile.quantiles)
    else:
        inner = column.upper * shares
    if column.kind.is_whole:
        inner = np.floor(inner)
    ends = sorted({float(x) for x in inner if 0 < x < column.upper})
    return (*ends, float(column.upper))


def _checked_cuts(cuts: tuple[float, ...], column: Column) -> tuple[float, ...]:
    if not cuts or len(cuts) > MOST_INTERVALS or not all(map(isfinite, cuts)):
        raise InvalidQuery(f"cuts must be one to {MOST_INTERVALS} finite times.")
    if cuts[0] <= 0 or any(a >= b for a, b in pairwise(cuts)):
        raise InvalidQuery("cuts must be increasing and above 0; the first interval begins at 0.")
    if cuts[-1] > column.upper:
        raise InvalidQuery("cuts must lie within the declared bounds of time.")
    return cuts
