# SPDX-License-Identifier: Apache-2.0
"""Generalised linear models over replications: coverage of 95 % intervals, and a black-box audit.

AUDIT_REPLICATIONS (200): tables of each cell; `-s` shows the figures. Coverage is to be within
.93 and .97 but for two simulation errors, four coefficients counting as two independent ones.
"""

import os
from typing import Any

import numpy as np
import pytest
from scipy import stats

from reticent_server.accounting.conversions import rho_units
from support.fits.glm import fitted, glm_table, planned, slopes
from support.fits.regressions import drive, whole
from support.seeds import seeded

REPLICATIONS = int(os.environ.get("AUDIT_REPLICATIONS", "200"))
SLACK = 2 * np.sqrt(0.95 * 0.05 / (2 * REPLICATIONS))
TRUTH = np.array([0.5, 0.4, 0.4, 0.4])


def coverage(family: Any, n: int, epsilon: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Share of (replication, coefficient) with the truth inside, where the plan says it is
    estimable.
    """
    inside, ratio = [], 0.0
    for _ in range(REPLICATIONS):
        plan, result = fitted(glm_table(family, n, rng), slopes(3), family, epsilon)
        low, high = np.array(result["confidence_intervals"], dtype=float).T
        covered = (low <= TRUTH) & (high >= TRUTH)
        inside.append(np.where(result["estimable"], covered, np.nan))
        ratio = plan.forecast_fit.worst
    return float(np.nanmean(inside)), ratio


@pytest.mark.audit
@pytest.mark.parametrize("family", ["binomial", "poisson", "gamma"])
@pytest.mark.parametrize(
    ("n", "epsilon"), [(2_000, 1.0), (5_000, 1.0), (20_000, 0.2), (5_000, 4.0)]
)
def test_intervals_cover(family: str, n: int, epsilon: float) -> None:
    found, ratio = coverage(family, n, epsilon, seeded(1))
    print(f"{family} n={n} epsilon={epsilon:g} noise={ratio:.2f} coverage={found:.3f}")
    assert ratio < 3
    assert 0.93 - SLACK <= found <= 0.97 + SLACK, (found, ratio)


@pytest.mark.audit
@pytest.mark.parametrize("family", ["binomial", "poisson", "gamma"])
def test_black_box_audit_of_a_coefficient(family: str) -> None:
    """3,000 fits a neighbour: the event is chosen on one half, Clopper–Pearson on the other."""
    rng = seeded(0)
    table = glm_table(family, 40, rng, p=1)
    other = {k: v.copy() for k, v in table.items()}
    table["x0"][0], table["y"][0] = 3.0, 1.0 if family == "binomial" else 40.0
    other["x0"][0], other["y"][0] = 3.0, 0.0
    samples = [slopes_drawn(family, data, table) for data in (table, other)]
    assert epsilon_lower_bound(*samples) <= 1.0


def slopes_drawn(family: Any, data: Any, profiled: Any, draws: int = 3_000) -> Any:
    plan = planned(profiled, slopes(1), family, rho_units(1.0, 1e-6))
    return np.array(
        [drive(plan.run(), whole(data)).result["coefficients"][1] for _ in range(draws)]
    )


def epsilon_lower_bound(first: Any, second: Any, delta: float = 1e-6, level: float = 1e-4) -> Any:
    half = len(first) // 2
    thresholds = np.quantile(np.concatenate([first[:half], second[:half]]), np.linspace(0, 1, 41))
    p = np.array([(first[:half] > t).mean() for t in thresholds[2:-2]])
    q = np.array([(second[:half] > t).mean() for t in thresholds[2:-2]])
    best = np.argmax(np.abs(np.log(p / q)))
    threshold, high, low = thresholds[2:-2][best], first, second
    if p[best] < q[best]:
        high, low = second, first
    hits, misses = (high[half:] > threshold).sum(), (low[half:] > threshold).sum()
    p_low = stats.beta.ppf(level, hits, half - hits + 1)
    q_high = stats.beta.ppf(1 - level, misses + 1, half - misses)
    return np.log((p_low - delta) / q_high)
