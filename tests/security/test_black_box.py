# SPDX-License-Identifier: Apache-2.0
"""A black-box audit through HTTP: what an analyst sees of two neighbouring tables obeys what is
charged.

The outcome of a release is (status, value, bucket of its time), the time grid being off; how much
it tells is measured by support.attacks.black_box.
"""

import numpy as np
import pytest

from support.attacks.black_box import least_rho
from support.attacks.neighbouring_pair import (
    SIDES,
    Outcome,
    load_pair,
    neighbours,
    probing,
    share_profile,
)
from support.installations.small import Installation
from support.seeds import seeded

DRAWS = 10_000


@pytest.mark.audit
@pytest.mark.parametrize(
    ("scale", "accepted"), [(1.0, True), (0.7, True), (0.4, False), (0.3, False)]
)
def test_the_audit_accepts_the_true_noise_and_rejects_two_fifths_of_it(
    scale: float, accepted: bool
) -> None:
    """On simulated counts that differ by 1; 0.7 of the noise is beyond what this many can show."""
    rho, rng = 0.05, seeded(1)
    sigma = scale / np.sqrt(2 * rho)
    left, right = (
        [Outcome("reply", v, 0.0, rho) for v in mean + sigma * rng.normal(size=DRAWS)]
        for mean in (0.0, 1.0)
    )
    assert (least_rho(left, right) <= rho) == accepted


@pytest.mark.audit
@pytest.mark.parametrize("told_by", ["status", "seconds"])
def test_the_audit_sees_a_status_or_a_time_that_tells(told_by: str) -> None:
    rng = seeded(2)

    def outcomes(share: float) -> list[Outcome]:
        told = rng.random(4000) < share
        plain = Outcome("reply", 0.0, 0.01, 0.01)
        telling = Outcome("no_reply", 0.0, 0.01, 0.01)
        if told_by == "seconds":
            telling = Outcome("reply", 0.0, 0.02, 0.01)
        return [telling if t else plain for t in told]

    assert least_rho(outcomes(0.1), outcomes(0.4)) > 0.01
    assert least_rho(outcomes(0.1), outcomes(0.1)) == 0.0


QUERIES = {
    "count": (60, DRAWS, {"kind": "count", "where": "k == 0"}),
    "linear_regression": (600, DRAWS // 4, {"kind": "linear_regression", "formula": "y ~ x"}),
}
"""Rows, draws and query. With fewer rows a fit is bootstrapped, which takes long, and its noisy
Jacobian is floored, which hides what a record does. A shared profile leaves all of the budget to
the fit.
"""


@pytest.mark.audit
@pytest.mark.parametrize("kind", list(QUERIES))
def test_releases_of_neighbours_tell_no_more_than_is_charged(
    installation: Installation, kind: str
) -> None:
    """The changed record is as far out as the declared bounds allow."""
    rows, draws, query = QUERIES[kind]
    pair = load_pair(installation, *neighbours(rows, "-10,5,9,c,1,1"))
    share_profile(pair)
    with probing(pair) as prober:
        found = prober.outcomes(query, {"epsilon": 2.0, "delta": 1e-6}, draws)
    left, right = (found[side] for side in SIDES)
    (rho,) = {o.rho for o in (*left, *right)}
    for pair_of_sides in ((left, right), (right, left)):
        assert least_rho(*pair_of_sides) <= rho
