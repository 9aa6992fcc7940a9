# SPDX-License-Identifier: Apache-2.0
"""A negative binomial with its dispersion over replications: coverage of coefficients and of the
dispersion.

AUDIT_REPLICATIONS (200): tables of each cell; `-s` shows the figures.
"""

import os
from typing import Any

import numpy as np
import pytest

from reticent_server.accounting.conversions import rho_units
from support.fits.dispersion import TRUTH, estimated, made_up
from support.fits.regressions import drive, whole
from support.seeds import seeded

REPLICATIONS = int(os.environ.get("AUDIT_REPLICATIONS", "200"))


def share_within(off: Any) -> float:
    return float(np.mean(np.abs(off) <= 1.959964))


@pytest.mark.audit
@pytest.mark.parametrize(
    ("n", "epsilon", "alpha"),
    [
        (5_000, 4.0, 0.5),
        (20_000, 1.0, 0.5),
        (20_000, 4.0, 0.5),
        (20_000, 4.0, 2.0),
        (20_000, 1.0, 0.1),
    ],
)
def test_intervals_of_a_dispersion_cover(n: int, epsilon: float, alpha: float) -> None:
    rng, held, off, wider = seeded(1), [], [], []
    for _ in range(REPLICATIONS):
        table = made_up(n, rng, alpha)
        found: Any = drive(estimated(table, rho_units(epsilon, 1e-6)).run(), whole(table)).result
        ok = np.array(found["estimable"])
        z = (np.array(found["coefficients"]) - TRUTH) / np.array(
            found["standard_errors"], dtype=float
        )
        held += (np.abs(z[ok]) <= 1.959964).tolist()
        if "dispersion_interval" in found:
            value, error = found["dispersion"], found["dispersion_standard_error"]
            noise = found["dispersion_privacy_standard_error"]
            off.append(np.log(value / alpha) * value / error)
            wider.append(error / np.sqrt(error**2 - noise**2))
    print(
        f"n={n} epsilon={epsilon:g} alpha={alpha:g} coefficients={np.mean(held):.3f} "
        f"dispersion={share_within(off):.3f} "
        f"given={len(off) / REPLICATIONS:.2f} mean z={np.mean(off):.2f} "
        f"wider={np.median(wider):.2f}"
    )
    slack = 2 * np.sqrt(0.95 * 0.05 / REPLICATIONS)
    assert len(off) > 0.5 * REPLICATIONS
    assert 0.93 - slack / np.sqrt(2) <= np.mean(held) <= 0.97 + slack / np.sqrt(2)
    assert 0.93 - slack <= share_within(off) <= 0.97 + slack
