# SPDX-License-Identifier: Apache-2.0
"""The planned numbers of a fit by influence: shares of ρ, and the list of least curvatures.

(ε, δ) is taken as δ₁ + δ′, both δ/2: ρ = max{ρ: conv(ρ, δ′) ≤ ε} is spent on the pilot (30 %), the
choice of m (3 %), the test (22 %) and the release (45 %); the whole is δ₁-approximately ρ-zCDP,
hence (ε, δ)-DP.

The floors are .9 k · 2^(−j/2), k the curvature that a normal design would have in whitened
coordinates (of the logistic loss, where both outcomes are equally frequent).
"""

from math import isqrt
from typing import Literal

from reticent_server.accounting.conversions import max_rho, rho_of_bounded_range, rho_of_pure
from reticent_server.domain.columns import ConvexFit
from reticent_server.domain.cost import EPSILON_UNITS, RHO_UNITS, PrivacyCost
from reticent_server.fitting.budget import Sizes

# of ρ; the release gets the other .45. A smaller test refuses more tables; a smaller pilot weighs
# records worse
PILOT_SHARE, CHOICE_SHARE, TEST_SHARE = 0.30, 0.03, 0.22
# D and r, lengths of ϑ in whitened coordinates around the pilot: wider ones hold more exact fits
# and ask for a larger margin
REACH, SLACK = 0.4, 0.05
# of the normal design's curvature: at 1 a table as expected would pass by luck only
LARGEST_FLOOR = 0.9
# floors, each √2 below the one before: 6 reach k/6.3 and 8 reach k/12.6; each costs a candidate of
# the choice
FLOORS = {"huber": 6, "logistic": 8}


def spendable(offer: PrivacyCost) -> int:
    """ρ of the whole, with half of δ for the test."""
    return max_rho(offer.epsilon, offer.delta - offer.delta // 2)


def pilot_rho(rho: int) -> int:
    """What the pilot spends of a fit's `rho`; both in RHO_UNITS."""
    return int(PILOT_SHARE * rho)


def fit_part(
    loss: Literal["huber", "logistic"],
    sizes: Sizes,
    rho: int,
    delta: int,
    *,
    tuning: float = 0.0,
    curvature: float,
) -> ConvexFit:
    """The part that spends what a pilot leaves of `rho`. delta: δ₁. curvature: k."""
    choice = _pure_epsilon(int(CHOICE_SHARE * rho), 8)
    test = _pure_epsilon(int(TEST_SHARE * rho), 2)
    spent = pilot_rho(rho) + rho_of_bounded_range(choice) + rho_of_pure(test)
    return ConvexFit(
        loss=loss,
        tuning=tuning,
        size=sizes.size,
        radius_squared=sizes.radius_squared,
        floors=tuple(LARGEST_FLOOR * curvature * 2 ** (-j / 2) for j in range(FLOORS[loss])),
        reach=REACH,
        slack=SLACK,
        epsilon_choice=choice,
        epsilon_test=test,
        rho_release=rho - spent,
        delta=delta,
    )


def _pure_epsilon(rho: int, factor: int) -> int:
    """The largest ε (EPSILON_UNITS) with ε²/factor ≤ ρ (RHO_UNITS)."""
    return max(isqrt(factor * rho * EPSILON_UNITS**2 // RHO_UNITS), 1)
