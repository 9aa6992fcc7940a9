# SPDX-License-Identifier: Apache-2.0
"""What a reply says of a jump and of the two lines: post-processing.

θ = (A₋, B₋, A₊, B₊) are the lines' levels at the cut-off and slopes by u = |x − c|/h. The jump τ̂ is
released of its own; θ is what first steps say of it, moved so that A₊ − A₋ = τ̂ (a projection by
θ's covariance). Slopes have the wider intervals of the first steps.
"""

from dataclasses import dataclass

import numpy as np

from reticent_server.domain.steps import FloatArray, Released
from reticent_server.fitting.report import EVEN_WEIGHTS, BoolArray, intervals, p_values, roots
from reticent_server.fitting.results import Cut, RegressionResult, Weighting
from reticent_server.fitting.row_tail import RowCut
from reticent_server.fitting.trust import heavy_tails
from reticent_server.kinds.discontinuity.lines import LEAKS, SideLine
from reticent_server.kinds.discontinuity.records import LocalRecords
from reticent_server.numerics.short_covariance import shortened

KNOWN = 0.75  # of a line's prior variance: less, and the interval would be the prior's
LEANING = 0.3
"""Of what the cut takes, in the jump: pieces of either sign lie on both sides, so that equal tails
take nothing; of tails that differ by a third a third is left.
"""

FEW = (
    "The jump is not identifiable at this epsilon: the noise hides how many records are on a side of "
    "the cut-off, or where its line is. Ask for a larger epsilon or bandwidth."
)
HEAVY = (
    "A few records far from the lines decide the jump, so there is no interval: ask for a logarithm "
    "of the response, or for a larger epsilon."
)
SLOPES = "Of {names} the noise leaves no interval; that of the jump does not depend on them."
_JUMP = 1
_DIFFERENCE = np.array([-1.0, 0.0, 1.0, 0.0])


@dataclass(frozen=True, slots=True, eq=False)
class JumpSums:
    """The last release: sums of ψ/C and of its square times `square`."""

    powers: Released
    cut: RowCut
    square: float


@dataclass(frozen=True, slots=True, eq=False)
class Jump:
    """τ̂ with the variances of sampling and of noise, and the allowance for the cut."""

    value: float
    sampling: float
    privacy: float
    allowance: float

    @classmethod
    def of(cls, records: LocalRecords, sides: tuple[SideLine, SideLine], sums: JumpSums) -> "Jump":
        """From the last release."""
        low, high = sides
        C = sums.cut.length
        start = records.half * float(high.line[0] - low.line[0])
        product = records.half**2 * (low.product + high.product)
        return cls(
            value=start + C * float(sums.powers.values[0]),
            sampling=max(C**2 * float(sums.powers.values[1]) / sums.square, 0.0),
            privacy=(C * sums.powers.sd) ** 2 + product,
            allowance=LEANING * sums.cut.excess,
        )

    @property
    def variance(self) -> float:
        return self.sampling + self.privacy + self.allowance**2


def jump_result(
    records: LocalRecords,
    sides: tuple[SideLine, SideLine],
    sums: JumpSums,
    *,
    level: float,
    shares: dict[str, float],
    estimand: str,
    n: int,
) -> RegressionResult:
    """The reply: four coefficients, of which the second is the jump."""
    jump = Jump.of(records, sides, sums)
    refused = _refusals(sides, sums.cut, jump)
    theta, privacy, sampling = _joined(records, sides, jump)
    L = _to_terms(records)
    beta = L @ theta + np.array([records.centre, 0.0, 0.0, 0.0])
    noise, rest = L @ privacy @ L.T, L @ sampling @ L.T
    V = noise + rest
    estimable = _estimable(sides, refused)
    se, names = roots(V), list(records.design.names)
    allowances = np.zeros(len(beta))
    allowances[_JUMP] = jump.allowance
    lost = [name for name, ok in zip(names, estimable, strict=True) if not ok]
    return RegressionResult(
        terms=names,
        coefficients=beta.tolist(),
        standard_errors=se.tolist(),
        covariance=[[*row] for row in shortened(V)],
        confidence_level=level,
        confidence_intervals=intervals(beta, se, level, estimable),
        p_values=p_values(beta, se, estimable),
        privacy_standard_errors=roots(noise).tolist(),
        estimable=[bool(each) for each in estimable],
        directions=[],
        weighting=Weighting(**EVEN_WEIGHTS),
        scale=None,
        tuning=None,
        steps=3,
        shares=shares,
        estimand=estimand,
        n=n,
        warnings=refused or ([SLOPES.format(names=", ".join(lost))] if lost else []),
        sum_of_weights=sum(side.total for side in sides),
        cut=Cut(
            records_beyond=sums.cut.beyond,
            allowances=allowances.tolist(),
            tail_index=sums.cut.alpha if sums.cut.alpha > 0 else None,
        ),
    )


def _refusals(sides: tuple[SideLine, SideLine], cut: RowCut, jump: Jump) -> list[str]:
    """Why there is no interval; empty where there is one."""
    rest = np.sqrt(jump.sampling + jump.privacy)
    if max(side.leak for side in sides) > LEAKS:
        return [FEW]
    heavy = heavy_tails(np.array([jump.allowance]), np.array([rest]), told=cut.told)[0]
    return [HEAVY] if heavy else []


def _estimable(sides: tuple[SideLine, SideLine], refused: list[str]) -> BoolArray:
    """(4,) of intercept, jump, slope, change of the slope."""
    if refused:
        return np.zeros(4, dtype=bool)
    low, high = (side.known >= KNOWN for side in sides)
    return np.array([low.all(), True, low[1], low[1] and high[1]])


def _joined(
    records: LocalRecords, sides: tuple[SideLine, SideLine], jump: Jump
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """θ (4,) in units of the response, and its covariances (4, 4) of noise and of all else."""
    R = records.half
    theta = R * np.concatenate([side.line for side in sides])
    P, G = np.zeros((4, 4)), np.zeros((4, 4))
    for at, side in zip((slice(0, 2), slice(2, 4)), sides, strict=True):
        P[at, at], G[at, at] = R**2 * side.errors, side.sampling
    d = _DIFFERENCE
    S = G * (jump.sampling / float(d @ G @ d))  # of even errors: that of the jump is released
    K = (P + S) @ d / float(d @ (P + S) @ d)
    M = np.eye(4) - np.outer(K, d)
    theta = theta + K * (jump.value - d @ theta)
    privacy = M @ P @ M.T + np.outer(K, K) * jump.privacy
    rest = jump.sampling + jump.allowance**2
    return theta, privacy, M @ S @ M.T + np.outer(K, K) * rest


def _to_terms(records: LocalRecords) -> FloatArray:
    """(4, 4) from θ to intercept at x = 0, jump, slope, change of the slope."""
    c, h = records.kernel.centre, records.kernel.width
    return np.array(
        [
            [1.0, c / h, 0.0, 0.0],
            [-1.0, 0.0, 1.0, 0.0],
            [0.0, -1 / h, 0.0, 0.0],
            [0.0, 1 / h, 0.0, 1 / h],
        ]
    )
