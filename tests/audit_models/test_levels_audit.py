# SPDX-License-Identifier: Apache-2.0
"""Multinomial and ordinal logits over replications: coverage of 95 % intervals, and how much wider
than without noise they are.

AUDIT_REPLICATIONS (200): tables of each cell; `-s` shows the figures. Coverage is to be within .93
and .97 but for two simulation errors, as many independent coefficients counting as there are
predictors.
"""

import os
from typing import Any

import numpy as np
import pytest

from reticent_server.accounting.conversions import rho_units
from support.fits.categories import people, planned, truth
from support.fits.regressions import drive, whole
from support.seeds import seeded

REPLICATIONS = int(os.environ.get("AUDIT_REPLICATIONS", "200"))
INDEPENDENT = {"multinomial": 6, "ordinal": 3}


@pytest.mark.audit
@pytest.mark.parametrize("family", INDEPENDENT)
@pytest.mark.parametrize(
    ("n", "epsilon"),
    [(2_000, 4.0), (5_000, 1.0), (5_000, 4.0), (20_000, 0.25), (20_000, 1.0), (20_000, 4.0)],
)
def test_intervals_of_levels_cover(family: str, n: int, epsilon: float) -> None:
    rng, held, wider, off = seeded(1), [], [], []
    for _ in range(REPLICATIONS):
        table = people(rng, n, family)
        found: Any = drive(
            planned(table, rho_units(epsilon, 1e-6), family).run(), whole(table)
        ).result
        b, se, noise = (
            np.array(found[name], dtype=float)
            for name in ("coefficients", "standard_errors", "privacy_standard_errors")
        )
        ok = np.array(found["estimable"])
        held.append(np.where(ok, np.abs(b - truth(family)) <= 1.959964 * se, np.nan))
        wider.append(se / np.sqrt(se**2 - noise**2))
        off.append((b - truth(family)) / se)
    share, given = float(np.nanmean(held)), float(np.mean(np.isfinite(held)))
    print(
        f"{family} n={n} epsilon={epsilon:g} coverage={share:.3f} given={given:.2f} "
        f"wider={np.median(wider):.2f} worst mean z={np.abs(np.mean(off, axis=0)).max():.2f}"
    )
    slack = 2 * np.sqrt(0.95 * 0.05 / (INDEPENDENT[family] * REPLICATIONS))
    assert 0.93 - slack <= share <= 0.97 + slack
