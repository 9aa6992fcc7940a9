# SPDX-License-Identifier: Apache-2.0
"""Reply times of two tables, through the grid, cannot be told apart: an audit on the machine's
clock.

The two are asked in random order, so that load falls on both alike. An area is off by .009
(standard error, 2,000 times each) by chance; where one is too large, as many are asked again and
all are taken together, up to three times: a true difference stays, and chance does not (3σ, then 5σ
and 6σ).
"""

import numpy as np
import pytest
from scipy.stats import rankdata

from support.attacks.neighbouring_pair import (
    SIDES,
    Outcome,
    Pair,
    Prober,
    load_pair,
    neighbours,
    probing,
    share_profile,
)
from support.installations.small import Installation
from support.seeds import seeded

Found = dict[str, list[Outcome]]

REQUESTS, ROUNDS = 2000, 3
LARGEST_AUC = 0.53
FIT = {"kind": "linear_regression", "formula": "y ~ x"}
IQR = {"kind": "iqr", "column": "y", "mechanism": "ptr"}


def auc(left: np.ndarray, right: np.ndarray) -> float:
    """Of the better of the two classifiers "larger means right" and "smaller means right"."""
    ranks = rankdata(np.concatenate([left, right]))[len(left) :]
    area = (ranks.sum() - len(right) * (len(right) + 1) / 2) / (len(left) * len(right))
    return float(max(area, 1 - area))


def largest_auc(found: Found) -> float:
    """Over classifiers by the time and by its distance from the middle."""
    left, right = (np.array([o.seconds for o in found[side]]) for side in SIDES)
    middle = np.median(np.concatenate([left, right]))
    return max(auc(left, right), auc(np.abs(left - middle), np.abs(right - middle)))


def alike(prober: Prober, query: dict[str, str], privacy: dict[str, float]) -> Found:
    """Outcomes that no classifier tells apart; asserts that there are."""
    found: Found = {side: [] for side in SIDES}
    for _ in range(ROUNDS):
        more = prober.outcomes(query, privacy, REQUESTS)
        found = {side: found[side] + more[side] for side in SIDES}
        if largest_auc(found) <= LARGEST_AUC:
            return found
    raise AssertionError(f"an area of {largest_auc(found):.3f}")


def test_the_classifier_sees_a_difference() -> None:
    rng = seeded(4)
    plain, late, wide = rng.normal(size=(3, REQUESTS))
    assert auc(plain, late + 0.3) > LARGEST_AUC
    assert auc(np.abs(plain), np.abs(1.3 * wide)) > LARGEST_AUC
    assert auc(plain, late) < LARGEST_AUC


@pytest.fixture
def pair(installation: Installation) -> Pair:
    """Neighbours with the same public facts: one profile, so that the fits are planned alike."""
    loaded = load_pair(installation, *neighbours(4000, "-10,5,9,c,1,1"))
    share_profile(loaded)
    return loaded


@pytest.mark.audit
@pytest.mark.parametrize("cache_bytes", [0, 1 << 28], ids=["cold", "warm"])
@pytest.mark.parametrize(
    ("query", "epsilon"), [({"kind": "count"}, 1.0), (FIT, 5.0)], ids=["count", "fit"]
)
def test_neighbours(pair: Pair, query: dict[str, str], epsilon: float, cache_bytes: int) -> None:
    with probing(pair, reply_grid_ms=100, cache_bytes=cache_bytes) as prober:
        alike(prober, query, {"epsilon": epsilon, "delta": 1e-6})


@pytest.mark.audit
@pytest.mark.parametrize("cache_bytes", [0, 1 << 28], ids=["cold", "warm"])
def test_a_reply_and_no_reply(installation: Installation, cache_bytes: int) -> None:
    """Tables as far apart as can be: of one the IQR is safe; one record more doubles the
    other's.
    """
    spread = [f"{(i % 200) / 20 - 5:.3f},0,0,a,0,0.5" for i in range(4000)]
    jumping = [f"{(-5, 0, 0, 5)[i % 4]},0,0,a,0,0.5" for i in range(4000)]
    tables = ("\n".join(["y,x,k,g,b,m", *rows, ""]) for rows in (spread, jumping))
    pair = load_pair(installation, *tables)
    with probing(pair, reply_grid_ms=100, cache_bytes=cache_bytes) as prober:
        found = alike(prober, IQR, {"epsilon": 20.0, "delta": 5e-5})
    replies = {side: np.mean([o.status == "reply" for o in found[side]]) for side in SIDES}
    assert replies["left"] > 0.99
    assert replies["right"] < 0.01  # each with probability δ
