# SPDX-License-Identifier: Apache-2.0
"""A planned private projection-depth median of up to 8 columns.

Columns are standardised by public facts (the profile's medians and ranges, else the declared
bounds), so that fixed directions suit columns in any units. In one dimension there is one
direction, in two they are evenly spaced, in more they are the axes and directions drawn once from a
public generator, the same for every data set. Each is rounded to whole numbers up to 2¹⁰.

η is planned (kinds.depth_median.likely), given, or chosen privately from a grid of five around the
planned one at a fifth of ε. Proofs: mechanisms.depth_draw, numerics.depth_certificate.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any, ClassVar, Literal

import numpy as np

from reticent_server.domain.columns import DepthDraw, Lattice
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import ColumnStep
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.public.standardise import SUMMARY_PROBABILITIES, Location, location
from reticent_server.kinds.depth_median.likely import Split, plan_split
from reticent_server.kinds.depth_median.query import MAX_COLUMNS, MOST_DIRECTIONS, DepthMedian
from reticent_server.kinds.shared.columns import ColumnsMap, profile_quantiles
from reticent_server.mechanisms import depth_draw
from reticent_server.numerics.public_random import public_generator

# by default: more make the depth nearer to that over all directions, and take time in proportion
DIRECTIONS = 500
LEAST_ETA, LARGEST_ETA = 1e-6, 1e9  # noise of 10⁶ scales, and of a step of the lattice
# length of a rounded direction: entries are whole numbers up to 2¹⁰, off by 5·10⁻⁴ of it at most
_WHOLE = 1024
# bits: rounding is 10⁻⁶ of a scale, and the lattice reaches 2¹⁹ scales to either side
_STEPS_IN_SCALE, _LATTICE_BITS = 20, 40
# multiples of the planned η: one of them is within a factor √2 of any η between ¼ and 4 times the
# planned one
_GRID = (4.0, 2.0, 1.0, 0.5, 0.25)
_CHOICE_SHARE = 5  # one part in so many of ε for the choice of η, as the query's docs say
# planned for a record's projection on a direction, sorting included; it sets the deadline only
_NANOSECONDS = {"iqr": 60, "mad": 200, "trimmed": 60}
# times √(dn): the η at which the noise is a seventh of a Gaussian sample's error
_SMALL = {"iqr": 7.0, "mad": 3.5, "trimmed": 1.7}


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthMedianResult:
    """point (columns,) in the units of the data. scale: of the projections. eta: sharpness of the
    draw."""

    columns: list[str]
    point: list[float]
    eta: float
    scale: Literal["iqr", "mad", "trimmed"]
    directions: int
    n: int


@dataclass(frozen=True, slots=True)
class DepthMedianPlan(Planned):
    """A planned depth median. likely: whether a reply is to be expected."""

    deadline_shares: ClassVar = (0.2, 0.5)

    names: tuple[str, ...]
    part: DepthDraw
    likely: bool
    n: int

    @property
    def outline(self) -> Outline:
        own_cost = depth_draw.cost(self.part)
        return Outline(
            columns=self.names,
            rho=own_cost.rho,
            mechanism="propose-test-release, then an exact draw from exp(-eta * outlyingness)",
            reference="Private projection-depth medians; Zuo (2003); Dwork & Lei (2009)",
            column_ms=self._column_ms,
            steady=False,
            own_cost=own_cost,
        )

    @property
    def _column_ms(self) -> int:
        """Sorting the projections; the linear programs and a planned number of draws."""
        sorting = self.n * len(self.part.directions) * _NANOSECONDS[self.part.scale]
        return ceil(sorting / 10**6) + 1500 * len(self.part.etas)

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The noise in scales of the projections, at the smallest η; sampling error is not in
        it."""
        return {
            "eta": list(self.part.etas),
            "privacy_noise_in_scales": len(self.names) / self.part.etas[-1],
            "reply_likely": self.likely,
            "directions": len(self.part.directions),
        }

    def run(self) -> Recipe:
        """One step; None where the test of safety does not pass."""
        (released,) = yield ColumnStep("depth median", (self.part,), ColumnsMap(self.names))
        if not released.passed:
            return None
        *point, eta = released.values.tolist()
        return DepthMedianResult(
            columns=list(self.names),
            point=point,
            eta=eta,
            scale=self.part.scale,
            directions=len(self.part.directions),
            n=self.n,
        )


def plan_depth_median(
    facts: DatasetFacts, columns: tuple[Column, ...], query: DepthMedian, offer: PrivacyCost
) -> DepthMedianPlan:
    """A depth median for at most `offer`'s (ε, δ). Raises InvalidQuery."""
    d = len(columns)
    if not 1 <= d <= MAX_COLUMNS or len({c.name for c in columns}) < d:
        raise InvalidQuery(f"A depth median has 1 to {MAX_COLUMNS} different columns.")
    number = DIRECTIONS if query.directions is None else query.directions
    if not 2 * d <= number <= MOST_DIRECTIONS:
        raise InvalidQuery(f"directions lie between twice the columns and {MOST_DIRECTIONS}.")
    choice = offer.epsilon // _CHOICE_SHARE if query.eta == "private" else 0
    split = plan_split(query.scale, facts.n, d, offer.epsilon - choice, offer.delta)
    part = DepthDraw(
        lattices=tuple(_lattice(facts, column) for column in columns),
        directions=public_directions(d, number),
        scale=query.scale,
        etas=_etas(query, split, facts.n, d),
        epsilon_choice=choice,
        epsilon_test=split.epsilon_test,
        epsilon_draw=split.epsilon_draw,
        delta=offer.delta,
    )
    likely = part.etas[-1] <= split.eta
    return DepthMedianPlan(tuple(c.name for c in columns), part, likely, facts.n)


def _etas(query: DepthMedian, split: Split, n: int, d: int) -> tuple[float, ...]:
    """η is no larger than makes the noise a seventh of a Gaussian sample's error."""
    small = _SMALL[query.scale] * sqrt(d * n)
    planned = min(split.eta, small) if split.eta > 0 else float(d)
    match query.eta:
        case None:
            return (planned,)
        case "private":
            return tuple(factor * planned for factor in _GRID)
        case eta:
            if not LEAST_ETA <= eta <= LARGEST_ETA:
                raise InvalidQuery(f"eta lies between {LEAST_ETA:g} and {LARGEST_ETA:g}.")
            return (eta,)


def public_directions(d: int, number: int) -> tuple[tuple[int, ...], ...]:
    """Directions in R^d as whole numbers; every d of them independent but for chance."""
    if d == 1:
        return ((_WHOLE,), (_WHOLE - 1,))
    if d == 2:
        angles = np.pi * np.arange(number) / number
        units = np.column_stack([np.cos(angles), np.sin(angles)])
    else:
        normal = public_generator("projection depth", str(d)).normal(size=(number, d))
        units = normal / np.sqrt((normal**2).sum(axis=1, keepdims=True))
        units[:d] = np.eye(d)
    return tuple(tuple(int(v) for v in row) for row in np.rint(_WHOLE * units))


def _lattice(facts: DatasetFacts, column: Column) -> Lattice:
    """2⁴⁰ steps of scale/2²⁰ around the column's public centre."""
    where = _location(facts, column)
    step = where.scale * 2.0**-_STEPS_IN_SCALE
    size = 2**_LATTICE_BITS
    return Lattice(where.centre - step * (size // 2), step, size)


def _location(facts: DatasetFacts, column: Column) -> Location:
    quantiles = profile_quantiles(facts, column.name, SUMMARY_PROBABILITIES)
    if quantiles is None:
        middle = (column.lower + column.upper) / 2
        quantiles = (middle,) * len(SUMMARY_PROBABILITIES)
    return location(quantiles, column.lower, column.upper)
