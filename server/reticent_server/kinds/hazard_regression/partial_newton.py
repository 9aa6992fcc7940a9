# SPDX-License-Identifier: Apache-2.0
"""Cox's partial likelihood by noisy Newton steps: a generator of steps that sees released values
only.

1. Rounds of Gram matrices of the regressors and a constant: their mean and covariance
   (fitting.rounds).
2. The table of follow-up: events and numbers at risk on a fine public grid
   (follow_up_table).
3. Early steps from β = 0, scores cut at a planned length. At each place the baseline and the means
   of those at risk are what the table and the public rows lead to expect there (early_steps,
   public_persons).
4. How long scores and roots are, and by how much each reported interval has more events than
   expected: the baseline is corrected by it (score_lengths).
5. The last steps, with scores cut as a whole at a rank from the top, as of any textbook's target
   (last_steps): the second moment of the roots, the score, the score with its meat.

*Privacy* (unconditional; neighbours replace one unit of m rows): each part is a sum of functions of
one record and of released values, bounded by the primitive that adds it, as fitting.whole_newton's
are; the table is RunningCounts, of one cell a record (two with a start: one in each part), and

    rest    events less cumulative hazards by interval    VectorSum  Δ = 2·REST m (cut at REST)
    bins    scores by bins of time, where they are asked  VectorSum  Δ = 2C m       (time_bins)
"""

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np

from reticent_server.domain.steps import FloatArray, Released, Step
from reticent_server.fitting.budget import Sizes
from reticent_server.fitting.coding import Coding, TermCoding
from reticent_server.fitting.filter import prior
from reticent_server.fitting.maps import invertible_on_lattice
from reticent_server.fitting.public.coordinates import Coordinates, second_moment
from reticent_server.fitting.rounds import whitening_rounds
from reticent_server.fitting.standard_fit import StandardFit
from reticent_server.fitting.state import StepPlace
from reticent_server.fitting.whitening import Whitening
from reticent_server.fitting.whole_newton import Whole
from reticent_server.kinds.hazard_regression.early_steps import EarlySteps
from reticent_server.kinds.hazard_regression.follow_up_table import RiskBaseline, RiskTableStep
from reticent_server.kinds.hazard_regression.last_steps import LastSteps, aligned, allowed
from reticent_server.kinds.hazard_regression.partial_budget import PartialBudget
from reticent_server.kinds.hazard_regression.partial_score import FarWeights, FollowUpColumns
from reticent_server.kinds.hazard_regression.person_passes import (
    PersonPasses,
    model_of,
    score_of,
    scored,
)
from reticent_server.kinds.hazard_regression.proportionality import BinnedSlopes
from reticent_server.kinds.hazard_regression.public_persons import PersonsModel
from reticent_server.kinds.hazard_regression.score_lengths import ScoreLengths
from reticent_server.kinds.hazard_regression.strata import NO_STRATA, StrataMeans, strata_of_rows
from reticent_server.kinds.hazard_regression.time_bins import TimeBins
from reticent_server.kinds.shared.follow_up.question import FollowUp
from reticent_server.numerics.mallows import mallows_weights
from reticent_server.numerics.matrices import power

EARLY_STOP = 2.0
"""The cumulative hazard at which follow-up stops in early steps, and in all of a robust fit: where
it does not, scores of a few long survivors grow with the exponential of a step that went too far.
"""
_LAST_STOP = 8.0
"""The same in the last steps of a likelihood, where long scores are cut: one person in 3,000
outlives it where the model is right. Where it is not, stopping is another target: at 2 coefficients
of pbc, lung and mgus2 moved by 2 to 3 of Cox's standard errors, at 3.3 by 1 to 1.6.
"""
_UNLIKE_MEANS, _UNLIKE_LATE_MEANS = 0.1, 0.3
"""Standard deviations of a regressor, by which the mean of those at risk is off: public rows have
regressors that do not depend on each other, nor on when a person comes. A score is off by the
product of this and what hazards are off by: at epsilon = 1 by .3 of its sampling error (median of
seven real tables), of chemotherapy where age is the axis by 1 to 2.
"""
_DRIFT, _ROBUST_DRIFT = 0.25, 0.1
"""Of a predictor, by which it may be off after the early steps: with scores cut at 2 % of the
persons and follow-up that stops early the solution is another, by up to 7 standard errors
(rotterdam)."""
_LEAST_MOMENT = 1e-3  # eigenvalue of the whitened regressors' covariance, beside 1
_TINY = 1e-12  # of what is divided by

Fitting = Generator[Step, tuple[Released, ...], "PartialFit"]


@dataclass(frozen=True, slots=True, eq=False)
class PartialFit:
    """A released fit, in standardised units of the slopes. hazards: (J,) between the cuts at x̃ =
    0, errors: (J,) relative, of persons and noise at the fit's coefficients; means: (J, k) ū in x̃,
    by which they move with these. far: what persons weigh, stop: where their follow-up ends.
    noise: of a stratum's events, over their mean number."""

    fit: StandardFit
    coding: Coding
    hazards: FloatArray
    errors: FloatArray
    means: FloatArray
    far: FarWeights | None
    stop: float
    noise: float
    binned: BinnedSlopes | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PartialNewton:
    """A planned fit. whole: the coding with a constant first; coding: of the slopes alone. fine:
    the follow-up on the whole grid, columns: the same with its start; cuts: (J,) those that are
    reported, of each stratum. offset: (rows,) of the public rows, less its middle.
    """

    whole: TermCoding
    coding: Coding
    coordinates: Coordinates
    offset: FloatArray | float
    budget: PartialBudget
    sizes: Sizes
    fine: FollowUp
    columns: FollowUpColumns
    cuts: tuple[float, ...]
    radius: float | None = None
    strata: StrataMeans = NO_STRATA
    bins: int = 0

    @property
    def table(self) -> RiskTableStep:
        """The step that counts events and persons at risk."""
        b = self.budget
        return RiskTableStep(
            self.fine, self.columns, self.cuts, b.table, b.entries, self.sizes.unit_rows
        )

    def fit(self) -> Fitting:
        """All steps: whitening, the table, the early steps, lengths, the last steps, bins."""
        rounds, count_rho = self.budget.fit.rounds, self.budget.fit.count
        sizes = replace(self.sizes, size=self.whole.size)
        found, count, present = yield from whitening_rounds(
            self.whole, self.coordinates, rounds, count_rho, sizes
        )
        table = self.table
        base = table.baseline((yield table.step()), count)
        whitening = slopes_whitening(found, self.sizes.size, self.strata, base.table.shares)
        over, weights = self._weighing(whitening)
        model = PersonsModel(
            whitening, over.reach**2, self.offset, 1.0, base.table, count, EARLY_STOP, weights
        )
        early = EarlySteps(over, self.budget)
        place = yield from early.run(early.start(model, count, present=present))
        measure = ScoreLengths(over, self.budget, self.coordinates, table.axis_cuts)
        place, cuts, base = yield from measure.measured(self._later(place), base)
        whole, fit = yield from LastSteps(over, self.budget).run(place, cuts)
        fit = self._allowed(fit, whole, base)
        bins = TimeBins(over, self.bins, self.budget.bins)
        binned = (yield from bins.scores(whole, fit)) if self.bins else None
        return self._finished(fit, whole.place, base, over.far, binned)

    @property
    def stop(self) -> float:
        """Where follow-up stops in the last steps."""
        return _LAST_STOP if self.radius is None else EARLY_STOP

    def _allowed(self, fit: StandardFit, whole: Whole, base: RiskBaseline) -> StandardFit:
        """With allowances for the cut, beside that of whole_newton, and for the baseline."""
        place, H = whole.place, whole.curvature.H
        scores = model_of(place).persons(place.direction, place.score).scores
        cut = aligned(H, whole.cuts.score.length, scores)
        return allowed(fit, H, cut=cut, unsure=self._unlike_means**2 * base.unsure)

    @property
    def _unlike_means(self) -> float:
        return _UNLIKE_MEANS if self.columns.start is None else _UNLIKE_LATE_MEANS

    def _later(self, place: StepPlace) -> StepPlace:
        """The same for the last steps: follow-up stops later, and what the early steps solved may
        be another equation."""
        model = replace(model_of(place), stop=self.stop)
        room = prior(model.whitening, _DRIFT if self.radius is None else _ROBUST_DRIFT)
        return scored(replace(place, model=model, state=place.state.widened(room)))

    def _weighing(self, whitening: Whitening) -> tuple[PersonPasses, FloatArray | float]:
        """Passes with the weights of persons far from the middle, and those of the public rows."""
        over = PersonPasses(self.coding, self.columns, self.sizes)
        if self.radius is None:
            return over, 1.0
        centre, R2 = whitening.rows.mean(axis=0), self.radius * self.sizes.size
        far = FarWeights(whitening.transform, centre, R2)
        squared = np.sum((whitening.rows - centre) ** 2, axis=1)
        return replace(over, far=far), mallows_weights(squared, R2)

    def _finished(
        self,
        fit: StandardFit,
        place: StepPlace,
        base: RiskBaseline,
        far: FarWeights | None,
        binned: BinnedSlopes | None,
    ) -> PartialFit:
        known, cuts = score_of(place).known, self.table.axis_cuts
        upto = np.interp(cuts, known.nodes, known.cumulative)
        areas = np.stack([np.interp(cuts, known.nodes, a) for a in known.areas.T], axis=1)
        spent, area = np.diff(upto, prepend=0.0), np.diff(areas, axis=0, prepend=0.0)
        lengths = np.diff(cuts, prepend=0.0)
        means = area / np.maximum(spent, _TINY)[:, None]
        return PartialFit(
            fit,
            self.coding,
            spent / lengths,
            base.errors,
            means,
            far,
            self.stop,
            base.noise,
            binned,
        )


def slopes_whitening(
    found: Whitening, k: int, strata: StrataMeans, shares: FloatArray
) -> Whitening:
    """Of k regressors with a constant first and the strata's indicators last: coordinates (k,) in
    which the slopes' regressors have the covariance I, and public rows with the mean and covariance
    that were released, within and between strata. shares: (G,) of the strata."""
    X = found.rows @ found.frequency.T @ np.linalg.inv(found.transform).T
    S = second_moment(X)
    S = S / max(float(S[0, 0]), _TINY)
    slopes, beside = slice(1, k + 1), strata.others(k)
    B = strata.regressed(S, k)
    R = np.zeros((k, len(S)))
    R[:, slopes], R[:, beside] = np.eye(k), -B
    C = R @ S @ R.T
    least = _LEAST_MOMENT * np.maximum(np.diag(S)[slopes], _TINY)
    size = np.sqrt(np.maximum(np.diag(C), least))
    W = power(C / np.outer(size, size), -0.5, _LEAST_MOMENT) / size
    W = invertible_on_lattice(W)
    x = X @ R.T
    x = x - x.mean(axis=0)
    shape = power(second_moment(x / size), -0.5, _LEAST_MOMENT) / size
    centres = strata.standing @ (W @ B).T
    rows = x @ shape.T + centres[strata_of_rows(len(x), shares)]
    share = (W @ np.linalg.inv(found.transform)[slopes]) ** 2
    share = share / share.sum(axis=1, keepdims=True)
    error, noise = (np.sqrt(share @ v**2) for v in (found.error, found.noise))
    return Whitening(W, rows, k, np.eye(k), error, noise, np.eye(k), np.ones(k))
