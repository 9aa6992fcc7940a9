# SPDX-License-Identifier: Apache-2.0
"""What part of ρ goes to which release of a fit whose last two scores are cut as a whole (fitting.whole_newton)."""

from dataclasses import replace
from math import sqrt

from reticent_server.fitting.budget import (
    FitBudget,
    Signal,
    Sizes,
    _affordable,
    allocate,
    noise_ratio,
    precision,
)

TAIL, ROWS_TAIL = 0.06, 0.02  # of ρ: the lengths of scores, and of rows
MOMENT, MEAT, SCALES = 0.08, 0.10, 0.02
EARLY = (0.03, 0.03, 0.05)  # of ρ: gradients of the early steps
WHOLE = (0.15, 0.25, 0.6)  # of the ρ of the whole gradients
RANK = 60.0


def plan_whole_budget(sizes: Sizes, rho: int, signal: Signal, *, masked: bool, weighted: bool) -> FitBudget:
    rounds = _affordable(sizes, rho)[-1]
    count = 0.01 if masked or weighted else 0.0
    scales = SCALES if signal.scaled else 0.0
    fixed = TAIL + ROWS_TAIL + MOMENT + MEAT + scales + sum(EARLY) + count
    fixed += sum(s for s, _ in rounds)
    left = 1 - fixed
    T = len(EARLY) + len(WHOLE)
    measured = len(EARLY) if scales else 0
    gradients = (*EARLY, *(f * left for f in WHOLE))
    weights = (
        *(s for s, _ in rounds),
        *((scales / max(measured, 1),) * measured),
        *((count,) if count else ()),
        TAIL,
        ROWS_TAIL,
        MOMENT,
        MEAT,
        *gradients,
    )
    parts = iter(allocate(rho, weights))
    budget = FitBudget(
        rounds=tuple((next(parts), radius) for _, radius in rounds),
        scales=tuple(next(parts) for _ in range(measured)),
        count=next(parts) if count else 0,
        tail=next(parts),
        rows_tail=next(parts),
        jacobians=(0,) * len(EARLY) + (next(parts), 0, 0),
        meat=next(parts),
        gradients=tuple(next(parts) for _ in gradients),
        eta=noise_ratio(sizes, rho, signal),
        precision=precision(sizes, rho, rounds[-1]),
        size=sizes.size,
        joint=replace(signal.together, used=not weighted),
        rank=RANK,
    )
    return budget.raised(rho)
