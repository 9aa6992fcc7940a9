# SPDX-License-Identifier: Apache-2.0
"""What part of ρ goes to which release of a fit whose last scores are cut as a whole
(fitting.whole_newton).

Shares come from q, n and ρ through the rounds of the whitening alone (fitting.budget); the others
are the same for all fits. They were chosen on half of 23 linear models of real tables at ε = 1
(benchmarks.real_tables), and a third more or less of any of them changes widths by less than 3 %.
"""

from reticent_server.domain.steps import VectorSum
from reticent_server.fitting.budget import (
    FitBudget,
    JointParts,
    Signal,
    Sizes,
    affordable_rounds,
    allocate,
    noise_ratio,
    precision,
    raised,
)
from reticent_server.fitting.noise import planned_sd

WHOLE_STEPS = 3
RANK = 4.7
"""Records beyond the cut, in standard deviations of the noise of the last sums, which is a number
of cuts: 60 at epsilon = 1, 17 at 4. The bias is some .3 · rank/(α − 1) cuts, and the sum of both is
least from 40 (α = 2) to 85 (α = 5) at epsilon = 1.
"""
LEAST_RANK = 0.5  # of a record: without noise nothing is cut
LEAST_REACH = 2.0  # √(R²/q) of the rows' second moment: the wide radius of a whitening
_TAIL, _ROWS_TAIL = 0.06, 0.02  # of ρ: the lengths of scores, and of rows
_MOMENT, _MEAT, _SCALES = (
    0.08,
    0.10,
    0.02,
)  # of ρ; a meat of up to a quarter of the last gradient is free
_EARLY = (0.03, 0.03, 0.05)  # of ρ: gradients of the early steps, which need only come near
_EARLY_BENT = (
    0.04,
    0.06,
    0.11,
)  # the same where mean scores bend: from farther away they tell less
_LAST = (
    0.15,
    0.25,
    0.6,
)  # of the ρ that is left: the last gradients, of which the later are nearer
_COUNT = 0.01  # of ρ: of the records in use


def plan_whole_budget(
    sizes: Sizes,
    rho: int,
    signal: Signal,
    *,
    masked: bool,
    weighted: bool = False,
    entries: int = 0,
    early: tuple[float, ...] = (),
) -> FitBudget:
    """Splits `rho` (RHO_UNITS) over the releases; their steps cost at most rho. entries: of a score
    whose rows are not along it, and are charged beside it; 0 where they are along it. early: shares
    of the early gradients where they are others."""
    rounds = affordable_rounds(sizes, rho)[-1]
    count = _COUNT if masked or weighted else 0.0
    scales = _SCALES if signal.scaled else 0.0
    early = early or (_EARLY_BENT if signal.bent else _EARLY)
    fixed = _TAIL + _ROWS_TAIL + _MOMENT + _MEAT + scales + sum(early) + count
    left = 1 - fixed - sum(share for share, _ in rounds)
    gradients = (*early, *(f * left for f in _LAST))
    measured = len(early) if scales else 0
    weights = (
        *(share for share, _ in rounds),
        *((scales / max(measured, 1),) * measured),
        *((count,) if count else ()),
        *(_TAIL, _ROWS_TAIL, _MOMENT, _MEAT),
        *gradients,
    )
    parts = iter(allocate(rho, weights))
    budget = FitBudget(
        rounds=tuple((next(parts), radius) for _, radius in rounds),
        scales=tuple(next(parts) for _ in range(measured)),
        count=next(parts) if count else 0,
        tail=next(parts),
        rows_tail=next(parts),
        jacobians=(*(0,) * len(early), next(parts), *(0,) * (WHOLE_STEPS - 1)),
        meat=next(parts),
        gradients=tuple(next(parts) for _ in gradients),
        eta=noise_ratio(sizes, rho, signal),
        precision=precision(sizes, rho, rounds[-1]),
        size=sizes.size,
        joint=JointParts(step=not entries, meat=True, used=not weighted),
        entries=entries,
    )
    return raised(budget, rho)


def planned_rank(sizes: Sizes, budget: FitBudget, deviations: float = RANK) -> float:
    """How many records the cut leaves beyond it: so many standard deviations of the noise."""
    rho = sum(budget.gradients[-WHOLE_STEPS:])
    sd = planned_sd(VectorSum(sizes.size, 1.0, rho, sizes.unit_rows))
    return max(deviations * sd, LEAST_RANK)
