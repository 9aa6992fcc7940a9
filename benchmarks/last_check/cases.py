# SPDX-License-Identifier: Apache-2.0
"""Tables on which a filter that is sure of its curvature stops short, and tables on which it does
not. Laws have symmetric errors, so that every robust fit has the law's coefficients.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks import persons
from benchmarks.accuracy import BenchTable
from benchmarks.every_kind import answer
from benchmarks.gauntlet.frame import PROFILE_EPSILON, Frame
from benchmarks.named_tests import offer
from reticent_server.domain.facts import ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.query import Query
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.registry import plan
from reticent_server.kinds.shared.linear.query import LinearRegression

TOO_WIDE = 10.0  # times the spread of each column in the profile of `wide_start`
_RARE = 0.006  # of the records in neither group, as of mothers by ethnicity
_EVENTS = 0.001  # of the reference level's records, which are a tenth
_SKEWED, _SHARED = 0.8, 0.7  # sd of ln(size), and the share of it that all sizes of a house share


@dataclass(frozen=True, slots=True, eq=False)
class MadeTable:
    """A table of a law. coefficients (q,): the law's. reply: asks the question of it."""

    coefficients: FloatArray
    reply: Callable[[], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class CheckedLaw:
    """name: of the fault, or of the law. made: a table from a seed."""

    name: str
    made: Callable[[np.random.Generator], MadeTable]


def _asked(table: BenchTable, query: Query, epsilon: float, beta: Sequence[float]) -> MadeTable:
    return MadeTable(
        np.asarray(beta, dtype=float), lambda: table.release(table.plan(query, epsilon))
    )


def _correlated(rng: np.random.Generator, n: int, p: int) -> FloatArray:
    distance = np.abs(np.subtract.outer(range(p), range(p)))
    return np.asarray(rng.normal(size=(n, p)) @ np.linalg.cholesky(0.5**distance).T)


def _table(X: FloatArray, y: FloatArray, reach: float, most: float) -> BenchTable:
    frame = Frame()
    for j, x in enumerate(X.T):
        frame.put(f"x{j}", np.clip(x, -reach, reach), -reach, reach)
    frame.put("y", np.clip(y, -most, most), -most, most)
    table = BenchTable(frame.arrays, frame.columns.values())
    return table.profiled(PROFILE_EPSILON)


def _regression(p: int) -> LinearRegression:
    return LinearRegression("y ~ " + " + ".join(f"x{j}" for j in range(p)))


def wide_start(rng: np.random.Generator) -> MadeTable:
    """The profile's quantiles are ten times as far from the median as the columns'."""
    X = _correlated(rng, 3_000, 5)
    table = _table(X, X.sum(axis=1) + rng.normal(size=len(X)), 60.0, 200.0)
    assert table.facts.profile is not None
    columns = {k: _spread(c) for k, c in table.facts.profile.columns.items()}
    table.facts = replace(table.facts, profile=Profile(columns))
    return _asked(table, _regression(5), 1.0, [0.0, *(1.0,) * 5])


def _spread(column: ColumnProfile) -> ColumnProfile:
    values = np.array([np.nan if v is None else v for v in column.quantiles], dtype=float)
    middle = float(np.nanmedian(values))
    wide = middle + TOO_WIDE * (values - middle)
    return replace(column, quantiles=tuple(None if v != v else float(v) for v in wide))  # noqa: PLR0124 - NaN


def unsettled_weights(rng: np.random.Generator) -> MadeTable:
    """Sizes of houses: lognormal, alike, and the error grows with them."""
    n, p = 3_000, 8
    shared = np.sqrt(_SHARED) * rng.normal(size=(n, 1))
    X = np.exp(_SKEWED * (shared + np.sqrt(1 - _SHARED) * rng.normal(size=(n, p))))
    y = X.sum(axis=1) + X.mean(axis=1) * rng.normal(size=n)
    return _asked(_table(X, y, 60.0, 500.0), _regression(p), 1.0, [0.0, *(1.0,) * p])


def level_without_events(rng: np.random.Generator) -> MadeTable:
    """A logit whose reference level has one event in a thousand records."""
    n = 6_000
    level, x = rng.choice(3, size=n, p=(0.1, 0.5, 0.4)), rng.normal(size=n)
    first = np.log(_EVENTS / (1 - _EVENTS))
    beta = [first, -first, -first + 0.5, 0.5]
    eta = np.take([first, 0.0, 0.5], level) + 0.5 * x
    frame = Frame().factor("g", np.take(["a", "b", "c"], level), ("a", "b", "c"))
    frame.put("x", np.clip(x, -6, 6), -6, 6).booleans(y=rng.random(n) < 1 / (1 + np.exp(-eta)))
    table = BenchTable(frame.arrays, frame.columns.values()).profiled(PROFILE_EPSILON)
    return _asked(table, Glm("y ~ g + x", "binomial"), 4.0, beta)


def rare_combination(rng: np.random.Generator) -> MadeTable:
    """Two dummies of which one is 1 in all records but a few: the constant is told by these."""
    n = 6_000
    group, x = rng.choice(3, size=n, p=(_RARE, 0.5, 0.5 - _RARE)), rng.normal(size=n)
    beta = [3.0, -3.0, -2.0, 1.0]
    y = 3.0 - 3.0 * (group == 1) - 2.0 * (group == 2) + x + rng.normal(size=n)
    frame = Frame().booleans(a=group == 1, b=group == 2)
    frame.put("x", np.clip(x, -6, 6), -6, 6).put("y", np.clip(y, -40, 40), -40, 40)
    table = BenchTable(frame.arrays, frame.columns.values()).profiled(PROFILE_EPSILON)
    return _asked(table, LinearRegression("y ~ a + b + x"), 1.0, beta)


def clipped_persons(rng: np.random.Generator) -> MadeTable:
    """Persons of whom a twentieth or more is clipped."""
    panel = persons.Panel("pooled", 2_500, 8, "informative", 1.0, "huber")
    columns, absent = persons.table(panel, panel.persons, int(rng.integers(2**31)))
    facts: DatasetFacts = persons.facts(panel)
    planned = plan(facts, panel.query, offer(panel.epsilon))
    block = Block(0, len(absent), columns, {persons.ABSENT: absent})
    return MadeTable(persons.truth(panel), lambda: answer(planned, block))


FAULTS = tuple(
    CheckedLaw(made.__name__.replace("_", " "), made)
    for made in (
        wide_start,
        unsettled_weights,
        level_without_events,
        rare_combination,
        clipped_persons,
    )
)


def _sound(n: int, p: int, law: str, epsilon: float) -> CheckedLaw:
    def made(rng: np.random.Generator) -> MadeTable:
        X = _correlated(rng, n, p)
        e = rng.standard_t(4, size=n) if law == "t" else rng.normal(size=n)
        if law == "scales":  # regressors in other units, and errors that grow with one of them
            e *= np.exp(X[:, 0] / 4)
        y = X.sum(axis=1) + e
        table = _table(X, y, 10.0, 100.0)
        return _asked(table, _regression(p), epsilon, [0.0, *(1.0,) * p])

    return CheckedLaw(f"{law} n={n} p={p} eps={epsilon:g}", made)


SOUND = tuple(
    _sound(n, p, law, epsilon)
    for n, p, epsilon in ((4_000, 2, 1.0), (10_000, 4, 1.0), (20_000, 4, 0.5), (20_000, 8, 1.0))
    for law in ("normal", "t", "scales")
)
