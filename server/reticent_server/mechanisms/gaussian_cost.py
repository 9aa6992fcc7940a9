# SPDX-License-Identifier: Apache-2.0
"""What a step of sums with Gaussian noise and of selections costs: the ρ_G of accounting.gaussian.

A step of ρ in zCDP (mechanisms.registry.rho) changes its sums by D_e at entry e with Σ_e
D_e²/(2σ_e²) ≤ ρ, and by D_j at part j with ‖D_j‖²/(2σ_j²) ≤ ρ_j, the part's own (for a GramSum the
sum over its diagonal and the entries above it, each with its own noise: mechanisms.noisy_sum,
one_vector, power_sum, running_counts). The proof in accounting.gaussian asks for Σ_e
D_e²/(2(σ_e² − t_e²)). With one t_j for each part and F_j = 1/(1 − t_j²/σ_j²), σ_j the part's least
scale, that is at most

    Σ_e D_e²/(2σ_e²) + Σ_j (F_j − 1) ‖D_j‖²/(2σ_j²) ≤ ρ + Σ_j ρ_j (F_j − 1).

t² is 7/8 for counts, whose steps are coarse, and 4 for all others, whose Δ is 2¹⁷ steps at least:
their F_j is 1 up to 2⁻²². A scale that bills at most ρ_j has σ_j² ≥ Δ_j²/(2ρ_j), off the diagonal
of a Gram sum half of that up to a rounding; a third is taken.

κ adds up to at most half of SLACK for 2¹⁴ entries of counts (κ < 1.62·10⁻¹³ each) and 2⁶⁰ others
(κ < 10⁻⁵⁹ each), more than any memory holds.

*Selections.* A quantile tree (mechanisms.quantile_tree) is made of exponential mechanisms whose
levels move by t, each of bounded range R = 2L(t), and ρ_j bounds Σ ½L(t)² = Σ R²/8 on every path,
over m rows and the sub-problems of a level too. Each is μ-GDP with ½μ² = (π/2) R²/8
(accounting.gaussian_account, 2), so that the tree costs (π/2) ρ_j, of which ρ_j is in ρ already:
the surcharge is (OTHER − 1) ρ_j. It is drawn exactly and has no κ. Accounting.gaussian says how it
composes with noise.

A release has no part but these (`Unpriced`): what is computed of whole columns, tests of safety
among it, is charged by zCDP.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from reticent_server.accounting.gaussian_account import COUNT_FEE, OTHER
from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.steps import (
    ColumnStep,
    CountSum,
    GramSum,
    Part,
    QuantileTree,
    RunningCounts,
    Step,
)
from reticent_server.mechanisms import noisy_sum, registry, running_counts

COUNTED = 1 << 14
"""Entries of counts in one release: four times those of the largest table."""

_COARSE, _FINE = Fraction(7, 8), Fraction(4)  # t², in squared integer steps
_TIMES = 4  # of t²: the least σ² that the proof is for


class Unpriced(RuntimeError):
    """A part that has no price, or noise with too little variance; or more than is paid for. The
    text is constant."""

    def __init__(self) -> None:
        super().__init__("a release is not what the Gaussian conversion is proved for")


@dataclass(frozen=True, slots=True)
class GaussianCost:
    """ρ_G in RHO_UNITS, and how many entries of counts there are."""

    rho: int = 0
    counted: int = 0

    def __add__(self, other: "GaussianCost") -> "GaussianCost":
        return GaussianCost(self.rho + other.rho, self.counted + other.counted)

    def check(self, rho: int) -> None:
        """Raises Unpriced where it is more than `rho` (RHO_UNITS), or has too many counts."""
        if self.rho > rho or self.counted > COUNTED:
            raise Unpriced

    def check_charged(self, charged: int) -> None:
        """Raises Unpriced where it is more than `charged` (RHO_UNITS) under the rule gdp, with the
        fee for each entry of counts (accounting.gaussian_account).
        """
        if self.rho + COUNT_FEE * self.counted > charged:
            raise Unpriced


def cost(step: Step) -> GaussianCost:
    """What a step costs, rounded up. Raises Unpriced."""
    if isinstance(step, ColumnStep):
        raise Unpriced
    counted = sum(part.bins for part in step.parts if isinstance(part, CountSum))
    return GaussianCost(registry.rho(step) + surcharge(step.parts), counted)


def surcharge(parts: Iterable[Part]) -> int:
    """Σ ρ_j (F_j − 1) in RHO_UNITS, F_j being OTHER for selections, rounded up. Raises
    Unpriced."""
    return ceil(sum(map(_surcharge, parts), start=Fraction(0)))


def _surcharge(part: Part) -> Fraction:
    if isinstance(part, QuantileTree):
        return part.rho * (OTHER - 1)
    least = _least_variance(part)
    t2 = _COARSE if isinstance(part, CountSum) else _FINE
    if least < _TIMES * t2:
        raise Unpriced
    return part.rho * t2 / (least - t2)


def _least_variance(part: Part) -> Fraction:
    """A lower bound of σ², in squared integer steps, of every entry."""
    module = running_counts if isinstance(part, RunningCounts) else noisy_sum
    whole = Fraction(module.sensitivity(part)) ** 2 * RHO_UNITS / (2 * part.rho)
    return whole / 3 if isinstance(part, GramSum) else whole
