# SPDX-License-Identifier: Apache-2.0
"""Weighted means: that of the table where there is little noise, with survey's error, and intervals
that hold.
"""

from typing import Any

import numpy as np
import pytest

from reticent_server.errors import InvalidQuery
from reticent_server.kinds import registry
from reticent_server.kinds.mean.kind import Mean
from reticent_server.mechanisms import registry as mechanisms
from support.fits.regressions import Trace, drive, whole
from support.kinds.named_tests import facts, offer, people_facts
from support.kinds.recipes import numeric
from support.seeds import seeded

COLUMNS = (numeric("y", 0.0, 100.0), numeric("x", -5.0, 5.0), numeric("w", 0.0, 10.0))


def surveyed(n: int, seed: int) -> dict[str, Any]:
    """Weights that go with the column, of .5 to 9.5."""
    rng = seeded(seed)
    w = rng.uniform(0.5, 9.5, n)
    return {
        "y": np.clip(30 + 2 * w + 12 * rng.normal(size=n), 0, 100),
        "x": rng.normal(size=n),
        "w": w,
    }


def asked(query: Mean, epsilon: float, table: dict[str, Any]) -> Trace:
    plan = registry.plan(facts(len(table["y"]), COLUMNS), query, offer(epsilon))
    trace = drive(plan.run(), whole(table))
    assert sum(map(mechanisms.rho, trace.steps)) == plan.rho <= offer(epsilon).rho
    return trace


def linearised(y: Any, w: Any) -> tuple[float, float]:
    """svymean of R's survey 4.1 with svydesign(ids = ~1, weights = ~w) gives the same numbers:
    n/(n − 1) in the place of n_e/(n_e − 1), which differ by 3 in 10⁴ here."""
    m = float(w @ y / w.sum())
    return m, float(np.sqrt(np.sum((w * (y - m)) ** 2)) / w.sum())


@pytest.mark.parametrize("where", [None, "x > 0"])
def test_it_is_the_tables_with_the_linearised_error(where: Any) -> None:
    table = surveyed(20_000, 1)
    trace = asked(Mean("y", where, weights="w"), 30.0, table)
    found, sd = trace.result, trace.released[0][0].sd
    used = table["x"] > 0 if where else np.ones(20_000, bool)
    y, w = table["y"][used], table["w"][used]
    mean, error = linearised(y, w)
    assert found["value"] == pytest.approx(mean, abs=0.03)
    sampling = np.sqrt(found["standard_error"] ** 2 - found["privacy_standard_error"] ** 2)
    assert sampling == pytest.approx(error, rel=0.03)
    noise = 50 * sd * np.hypot(1, mean / 50 - 1) / (w.sum() / 10)
    assert found["privacy_standard_error"] == pytest.approx(noise, rel=0.01)
    assert found["sum_of_weights"] == pytest.approx(w.sum(), rel=0.01)
    assert found["effective_n"] == pytest.approx(w.sum() ** 2 / (w @ w), rel=0.02)


def test_intervals_hold() -> None:
    """Of 100 at .95 at least 84 do: fewer by chance once in 10⁵, had the seeds been others."""
    truth = np.mean([linearised(*(surveyed(200_000, k)[c] for c in "yw"))[0] for k in (1, 2, 3)])
    hits = 0
    for seed in range(100):
        low, high = asked(Mean("y", weights="w"), 1.0, surveyed(2000, 10 + seed)).result[
            "confidence_interval"
        ]
        hits += low <= truth <= high
    assert hits >= 84


def test_of_no_records_the_interval_is_the_whole_range() -> None:
    found = asked(Mean("y", "x > 4.9", weights="w"), 0.5, surveyed(2000, 3)).result
    assert tuple(found["confidence_interval"]) == (0.0, 100.0)
    assert found["standard_error"] == 100
    assert found["effective_n"] is None


@pytest.mark.parametrize(
    "query",
    [
        Mean("y", by="g", weights="k"),
        Mean("y", weights="y"),
        Mean("y", weights="x"),
        Mean("y", weights="g"),
    ],
)
def test_what_is_not_answered(query: Mean) -> None:
    with pytest.raises(InvalidQuery):
        registry.plan(people_facts(2000), query, offer(1))


def test_several_rows_a_person_are_refused() -> None:
    with pytest.raises(InvalidQuery, match="exactly one row"):
        registry.plan(people_facts(2000, 3), Mean("y", weights="k"), offer(1))
