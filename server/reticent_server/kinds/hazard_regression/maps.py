# SPDX-License-Identifier: Apache-2.0
"""What one person contributes to a hazard regression: functions of the person and of public values
only.

u = W x̃ (k,), w = min(1, R²/‖u‖²), η = uᵀβ + o, o a record's offset less its public middle
(0 without one); δ, Λ and m = δ − Λ as in kinds.hazard_regression.follow_up, c ≥ 1; a, b public
scales; r = min(exp(o), d)/d ≤ 1, d public (1 without offset). Norms, for every record:

    exposure  (δ_j, r E_j/(l_j √J))_j, l_j the interval's length         ‖·‖² ≤ 1 + 1
    baseline  (δ_j, Λ_j)_j                                               ‖·‖² ≤ 1 + c²
    score     (a m_1, …, a m_J, w u Σm)                                  ‖·‖² ≤ (a² + R²) c²      if a² ≤ R²
    root      u √(w ΣΛ)                                                  ‖·‖² ≤ R² c
    cross     (b Λ_1, …, b Λ_J, w u Σ_j h_ji Λ_j for i ≤ d), |h_ji| ≤ 1  ‖·‖² ≤ (b² + dR²) c²
    meat      w u Σm                                                     ‖·‖ ≤ R c

since ‖wu‖ ≤ R, w‖u‖² ≤ R², ΣΛ ≤ c. For the score: without event ‖m‖ ≤ Σ|m| ≤ c, and |Σm| ≤ c. With
it, at ΣΛ = x ≤ c, ‖m‖² ≤ 1 + x² and (Σm)² = (1 − x)²; a²(1 + x²) + R²(1 − x)² is convex in x,
a² + R² at 0 and at c, as a² ≤ R², a²(1 + c²) + R²(c − 1)² ≤ (a² + R²) c². None of this asks what η
is: an offset of any size keeps each norm. The primitives enforce them.

A person's values are bit-identical whatever block it comes in: W and β are on a lattice
(fitting.maps).
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from reticent_server.domain.steps import Block, Contribution, FloatArray, Scaled
from reticent_server.fitting.coding import TermCoding
from reticent_server.fitting.maps import on_lattice, standardised
from reticent_server.kinds.hazard_regression.follow_up import events, stopped, watched
from reticent_server.kinds.hazard_regression.offset import PublicOffset, centred
from reticent_server.kinds.hazard_regression.surv import Hazards
from reticent_server.numerics.evaluate import in_use
from reticent_server.numerics.lengths import squared_lengths
from reticent_server.numerics.mallows import mallows_weights

BASELINE_SCALE = 1.2
"""a: of .7, 1, 1.2, 1.4 and 2 it left slopes the smallest errors at n = 5,000, epsilon = 1
(simulated)."""
CROSS_SCALE = 2.0
"""b: the numbers of expected events then have half of the noise of what is weighted by
regressors."""


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A public state of the fit. transform: W (k, k + 1) of x̃ = (1, …); beta (k,); hazards (J,) λ
    at the offset `middle`; stop: c."""

    transform: FloatArray
    beta: FloatArray
    hazards: FloatArray
    radius_squared: float
    stop: float
    middle: float = 0.0

    @property
    def vector_bound(self) -> float:
        """The norm bound of `score`."""
        return self.stop * sqrt(BASELINE_SCALE**2 + self.radius_squared)

    @property
    def root_bound(self) -> float:
        """The norm bound of `root`."""
        return sqrt(self.radius_squared * self.stop)

    @property
    def cross_bound(self) -> float:
        """The norm bound of `cross`."""
        d = along(len(self.hazards)).shape[1]
        return self.stop * sqrt(CROSS_SCALE**2 + d * self.radius_squared)

    @property
    def meat_bound(self) -> float:
        """The norm bound of `meat`."""
        return self.stop * sqrt(self.radius_squared)

    @property
    def baseline_bound(self) -> float:
        """The norm bound of `baseline`."""
        return sqrt(1 + self.stop**2)


EXPOSURE_BOUND = sqrt(2)
MANY = 6
"""Intervals from which on means of regressors have a curve: with fewer, of small tables, it was
noise (n = 2,000, epsilon = 1)."""


def along(intervals: int) -> FloatArray:
    """(J, d) h: Chebyshev's polynomials 1, τ, 2τ² − 1 of τ from −1 to 1 along the intervals; d: 3,
    2 below MANY intervals.

    What they leave of the regressors' means by interval lets errors of the baseline into the
    slopes: 1 and τ alone left .1 sd of a regressor, three leave .02, for a sixth more noise of
    `cross` (simulated, n = 5,000).
    """
    tau = np.linspace(-1.0, 1.0, intervals) if intervals > 1 else np.zeros(1)
    curve = np.column_stack([np.ones(intervals), tau, 2 * tau**2 - 1])
    return curve[:, : 3 if intervals >= MANY else min(intervals, 2)]


@dataclass(frozen=True, slots=True, eq=False)
class ExposureMap:
    """Gives `exposure` (2J, rows)."""

    asked: Hazards
    offset: PublicOffset

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        found = watched(self.asked, block)
        lengths = np.diff(self.asked.cuts, prepend=0.0)[:, None]
        share = found.at_risk / (lengths * sqrt(len(lengths))) * self._relative(block)
        return (_of_used(self.asked, block, np.vstack([events(found, found.seen), share])),)

    def _relative(self, block: Block) -> FloatArray | float:
        """(rows,) r."""
        if self.asked.design.offset is None:
            return 1.0
        far = np.log(self.offset.most)
        with np.errstate(all="ignore"):
            o = centred(self.asked.design, self.offset.middle, block)
            return np.asarray(np.exp(np.minimum(o - far, 0.0)))


@dataclass(frozen=True, slots=True, eq=False)
class BaselineMap:
    """Gives `baseline` (2J, rows)."""

    asked: Hazards
    coding: TermCoding
    point: Point

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        person = _persons(self.asked, self.coding, self.point, block)
        both = np.vstack([person.events, person.expected])
        return (_of_used(self.asked, block, both),)


@dataclass(frozen=True, slots=True, eq=False)
class HazardMap:
    """Gives `score` (J + k, rows) and `root`; at the last step `cross` (J + dk, rows) and `meat`
    after them."""

    asked: Hazards
    coding: TermCoding
    point: Point
    last: bool

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        person = _persons(self.asked, self.coding, self.point, block)
        u, w, expected = person.u, person.w, person.expected
        if self.asked.design.masked:
            used = in_use(self.asked.design, block)
            w, expected = w * used, expected * used
            residuals = (person.events - person.expected) * used
        else:
            residuals = person.events - expected
        total = expected.sum(axis=0)
        scores = u * (w * residuals.sum(axis=0))
        vector = np.vstack([BASELINE_SCALE * residuals, scores])
        root = Scaled(u, np.sqrt(w * total))
        if not self.last:
            return vector, root
        # No product of matrices, whose last bits would depend on the block.
        sums = [(h[:, None] * expected).sum(axis=0) for h in along(len(expected)).T]
        cross = np.vstack([CROSS_SCALE * expected, *(u * (w * each) for each in sums)])
        return vector, root, cross, scores


@dataclass(frozen=True, slots=True, eq=False)
class _Persons:
    """u (k, rows), w (rows,), δ and Λ (J, rows)."""

    u: FloatArray
    w: FloatArray
    events: FloatArray
    expected: FloatArray


def _persons(asked: Hazards, coding: TermCoding, point: Point, block: Block) -> _Persons:
    with np.errstate(all="ignore"):
        x = standardised(coding, block)
        W = on_lattice(point.transform, len(x))
        u = W @ x
        eta = on_lattice(W.T @ point.beta, len(x)) @ x
        eta += centred(asked.design, point.middle, block)
        w = mallows_weights(squared_lengths(u, np.empty(u.shape[1])), point.radius_squared)
        seen, expected = stopped(watched(asked, block), point.hazards, eta, point.stop)
    return _Persons(u, w, seen, expected)


def _of_used(asked: Hazards, block: Block, rows: FloatArray) -> FloatArray:
    return rows * in_use(asked.design, block) if asked.design.masked else rows
