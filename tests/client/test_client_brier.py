# SPDX-License-Identifier: Apache-2.0
"""The Brier score of binned residuals: that of the records, and errors that hold over releases."""

from typing import Any

import numpy as np
import pytest

from reticent import InvalidQuery
from reticent.kinds.binned_residuals import BinnedResiduals as Residuals
from reticent_server.domain.results import result_json
from reticent_server.kinds.binned_residuals.kind import KIND, BinnedResiduals
from support.fits.regressions import drive
from support.kinds import studies as plain
from support.seeds import seeded

EDGES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
COLUMNS = (plain.numeric("x", -6, 6), plain.boolean("y"))


def table(seed: int, n: int = 4_000) -> dict[str, Any]:
    rng = seeded(seed)
    x = np.clip(rng.normal(size=n), -6, 6)
    return {"x": x, "y": (rng.random(n) < probabilities(x)) * 1.0}


def probabilities(x: Any) -> Any:
    return 1 / (1 + np.exp(1.2 - x))


def released(rows: dict[str, Any], epsilon: float) -> Residuals:
    query = BinnedResiduals("y ~ x", (-1.2, 1.0), link="logit", bins=EDGES)
    plan = KIND.plan(plain.facts_of(rows, COLUMNS), query, plain.offer(epsilon))
    result = result_json(drive(plan.run(), plain.whole(rows)).result)
    return Residuals({"query": {"kind": "binned_residuals", "link": "logit"}, "result": result})


def score(rows: dict[str, Any]) -> float:
    return float(np.mean((rows["y"] - probabilities(rows["x"])) ** 2))


def test_it_is_the_mean_square_of_the_records() -> None:
    rows = table(1)
    found = released(rows, plain.NO_NOISE).brier()
    assert found.value == pytest.approx(score(rows), rel=3e-4)  # sums are whole numbers of steps
    spread = np.std((rows["y"] - probabilities(rows["x"])) ** 2) / np.sqrt(4_000)
    assert found.bse == pytest.approx(spread, rel=0.05)
    assert found.privacy_bse < 1e-6
    assert "Brier" in repr(found)


@pytest.mark.slow
def test_its_errors_hold_over_releases() -> None:
    """Over 60 releases: an sd is known to 4 of its standard errors, .37; no bias beyond
    4 of them."""
    rows = table(2)
    found = [released(rows, 1.0).brier() for _ in range(60)]
    away = np.array([f.value - score(rows) for f in found]) / [f.privacy_bse for f in found]
    assert away.std() == pytest.approx(1.0, abs=0.37)
    assert abs(away.mean()) < 4 / 60**0.5


def test_it_is_of_probabilities() -> None:
    rows = table(1)
    fit = released(rows, plain.NO_NOISE)
    other = Residuals({**fit.release, "query": {"kind": "binned_residuals", "link": "identity"}})
    with pytest.raises(InvalidQuery, match="link logit"):
        other.brier()
