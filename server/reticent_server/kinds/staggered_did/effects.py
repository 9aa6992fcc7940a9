# SPDX-License-Identifier: Apache-2.0
"""Group–time effects and their averages, from means of cohorts by period.

m_ct and N_ct are the mean and the number of cohort c in period t, c = 0 those never treated. With
m_Kt = Σ_{c∈K} N_ct m_ct / Σ_{c∈K} N_ct the mean of a set K of controls and b = g − 1,

    ATT(g, t) = (m_gt − m_gb) − (m_Kt − m_Kb).

K are the never treated, or all that are not treated by max(t, b), but for g itself. Before
treatment the base is b too ("universal"). Averages have the weights N_g = Σ_t N_gt / T:

    simple        Σ N_g ATT(g, t) / Σ N_g                over all g ≤ t
    dynamic e     Σ_g N_g ATT(g, g + e) / Σ_g N_g        its overall: the mean over e ≥ 0
    by cohort g   the mean of ATT(g, t) over t ≥ g       its overall: weighted by N_g
    calendar t    Σ_{g≤t} N_g ATT(g, t) / Σ_{g≤t} N_g    its overall: the mean over t

With the never treated as controls `dynamic` is Sun & Abraham's interaction-weighted estimator: in a
balanced panel their saturated regression has these ATT(g, t) as its coefficients, and their weights
are these shares.

Each is a smooth function of all m_ct and N_ct, so its variance is ∇ᵀV∇ (the delta method), V that
of the cells: one block for each cohort, since persons of different cohorts are independent. The
N_ct are taken as independent Poisson numbers, which gives the variance of multinomial shares, as
every function here is of shares alone.

Source: Callaway & Sant'Anna (2021), without covariates; Sun & Abraham (2021).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class CohortCells:
    """Means and numbers (C, T) of cohorts by period, with the covariance of both (C, 2T, 2T), of
    sampling and of noise. starts: (C,) the place of each cohort's first treated period; that of
    cohort 0 is T, for never. known: (C,) which cohorts' numbers are above their noise.
    """

    starts: tuple[int, ...]
    means: FloatArray
    sizes: FloatArray
    sampling: FloatArray
    privacy: FloatArray
    known: NDArray[np.bool_]

    @property
    def periods(self) -> int:
        """T."""
        return int(self.means.shape[1])

    @property
    def weights(self) -> FloatArray:
        """(C,) N_g."""
        return np.asarray(self.sizes.mean(axis=1))

    @property
    def treated(self) -> list[int]:
        """The places of the known cohorts that are treated within the periods."""
        return [c for c in range(1, len(self.starts)) if self.known[c]]


@dataclass(frozen=True, slots=True, eq=False)
class Combination:
    """A function of the cells: its value, and its gradient (C, 2T) by means and numbers."""

    value: float
    gradient: FloatArray

    def minus(self, other: "Combination") -> "Combination":
        """The difference."""
        return Combination(self.value - other.value, self.gradient - other.gradient)


class GroupTime(NamedTuple):
    """ATT(g, t). cohort: place of g among the cohorts. period: place of t."""

    cohort: int
    period: int
    effect: Combination


def group_time_effects(cells: CohortCells, *, never: bool) -> list[GroupTime]:
    """Every ATT(g, t) but that of the base period, of known cohorts. never: controls are those
    never treated, else those not yet treated. Effects without a control are left out.
    """
    found = []
    for c in cells.treated:
        base = cells.starts[c] - 1
        for t in range(cells.periods):
            controls = _controls(cells, c, max(t, base), never=never)
            if t != base and controls:
                own = _mean(cells, [c], t).minus(_mean(cells, [c], base))
                others = _mean(cells, controls, t).minus(_mean(cells, controls, base))
                found.append(GroupTime(c, t, own.minus(others)))
    return found


def _controls(cells: CohortCells, cohort: int, until: int, *, never: bool) -> list[int]:
    if never:
        return [0] if cells.known[0] else []
    every = range(len(cells.starts))
    return [c for c in every if cells.known[c] and c != cohort and cells.starts[c] > until]


def _mean(cells: CohortCells, cohorts: Sequence[int], t: int) -> Combination:
    """m_Kt."""
    N, m = cells.sizes[cohorts, t], cells.means[cohorts, t]
    total = N.sum()
    value = float(N @ m / total)
    gradient = np.zeros((len(cells.starts), 2 * cells.periods))
    gradient[cohorts, t] = N / total
    gradient[cohorts, cells.periods + t] = (m - value) / total
    return Combination(value, gradient)


def pooled(cells: CohortCells, effects: Iterable[GroupTime]) -> Combination:
    """Σ N_g ATT / Σ N_g over one or more effects, counting that shares are estimated."""
    effects = list(effects)
    weights, T = cells.weights, cells.periods
    total = sum(weights[e.cohort] for e in effects)
    value = float(sum(weights[e.cohort] * e.effect.value for e in effects) / total)
    gradient = np.zeros((len(cells.starts), 2 * T))
    for e in effects:
        gradient += weights[e.cohort] / total * e.effect.gradient
        gradient[e.cohort, T:] += (e.effect.value - value) / total / T
    return Combination(value, gradient)


def average(combinations: Sequence[Combination]) -> Combination:
    """Their mean."""
    return Combination(
        float(np.mean([c.value for c in combinations])),
        np.mean([c.gradient for c in combinations], axis=0),
    )


def covariance(combinations: Sequence[Combination], V: FloatArray) -> FloatArray:
    """(k, k) of the combinations, for cells of covariance V (C, 2T, 2T)."""
    D = np.stack([c.gradient for c in combinations])
    return np.asarray(np.einsum("ack,ckl,bcl->ab", D, V, D, optimize=True))
