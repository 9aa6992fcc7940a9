# SPDX-License-Identifier: Apache-2.0
"""How long the scores of a partial likelihood are, and where the last steps cut them: with a
correction of the baseline, by what was seen beyond what was expected.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from reticent_server.domain.steps import GramSum, Released, Step, SumStep, VectorSum
from reticent_server.fitting.noise import planned_sd
from reticent_server.fitting.public.coordinates import Coordinates
from reticent_server.fitting.row_tail import LengthGrid, RowCut, chosen_cut, chosen_reach
from reticent_server.fitting.state import StepPlace
from reticent_server.fitting.whole_budget import LEAST_REACH
from reticent_server.fitting.whole_newton import Cuts
from reticent_server.kinds.hazard_regression.follow_up_table import RiskBaseline
from reticent_server.kinds.hazard_regression.long_tails import long_tails
from reticent_server.kinds.hazard_regression.partial_budget import PartialBudget
from reticent_server.kinds.hazard_regression.partial_score import PartialLengthsMap, PartialScore
from reticent_server.kinds.hazard_regression.person_passes import (
    PersonPasses,
    model_of,
    score_of,
    scored,
)

REST = 1.5
"""The longest vector of events less cumulative hazards: an event's is 1 and a little, and a
cumulative hazard above 1.5 is rare."""

_ALONG = 2.0
"""Times the excess, where terms have long tails: what is cut then is along one of them. Without it
intervals of the others of flchain held .80 at epsilon = 3."""
Measured = tuple[StepPlace, Cuts, RiskBaseline]


@dataclass(frozen=True, slots=True, eq=False)
class ScoreLengths:
    """The step that measures them. cuts: (GJ,) the reported ones on the axis of all strata."""

    over: PersonPasses
    budget: PartialBudget
    coordinates: Coordinates
    cuts: tuple[float, ...]

    def measured(
        self, place: StepPlace, base: RiskBaseline
    ) -> Generator[Step, tuple[Released, ...], Measured]:
        """The place with the corrected baseline, and where its scores and roots are cut."""
        k, count, score = self.over.sizes.size, place.state.count, score_of(place)
        budget = self.budget.fit
        grid = LengthGrid(sqrt(k))
        rest = VectorSum(len(self.cuts), REST, self.budget.rest, self.over.unit_rows)
        parts = (
            grid.part(budget.tail, self.over.unit_rows),
            grid.part(budget.rows_tail, self.over.unit_rows),
            rest,
        )
        lengths = PartialLengthsMap(
            self.over.coding,
            self.over.columns,
            place.point,
            score.known,
            self.over.far,
            grid,
            grid,
            self.cuts,
        )
        first, second, third = yield SumStep("lengths of scores", parts, lengths)
        unit = planned_sd(GramSum(k, 1.0, budget.jacobians[place.t], self.over.unit_rows))
        persons = model_of(place).persons(place.direction, score)
        public = np.linalg.norm(persons.roots, axis=1)
        least = LEAST_REACH * sqrt(k)
        reach, lost = chosen_reach(grid, second, count, public, unit * sqrt(2 * k) / count, least)
        cut = self._cut(grid, first, count, score)
        cuts = Cuts(cut, reach, lost)
        base = base.corrected(self.cuts, third)
        model = replace(model_of(place), table=base.table)
        return scored(replace(place, model=model)), cuts, base

    def _cut(
        self, grid: LengthGrid, released: Released, count: float, score: PartialScore
    ) -> RowCut:
        """At a rank from the top, by the lengths that public persons' scores have; with terms of
        long tails, where persons come late, and with weights, by a curve through the released
        numbers alone. A curve put a cut of 70 records at 3 to 100 (nwtco at epsilon = 1); a shape
        put it at 180 where a few long survivors are far out (rotterdam), and intervals held .75.
        """
        rank = self.budget.rank(self.over.sizes)
        likelihood = self.over.far is None
        long = long_tails(self.coordinates, self.over.coding.design.terms)
        if likelihood and not long and self.over.columns.start is None:
            return chosen_cut(grid, released, count, rank, score.expected_shape())
        curve = chosen_cut(grid, released, count, rank).of_likelihood
        return replace(curve, excess=curve.excess * _ALONG) if likelihood and long else curve
