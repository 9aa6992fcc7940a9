# SPDX-License-Identifier: Apache-2.0
"""A level with too few events has no interval, and neither has what is compared with it; its
neighbours keep theirs.
"""

from typing import Any

import numpy as np
import pytest
from benchmarks.every_kind import answer
from benchmarks.named_tests import offer
from scipy.special import expit

from reticent_server.domain.facts import DatasetFacts, Profile
from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.fitting.fit_plan import FitPlan
from reticent_server.fitting.sparse_levels import least_curvatures
from reticent_server.fitting.whitening import unwhitened
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.registry import plan
from reticent_server.kinds.shared.linear.query import LinearRegression
from support.fits.regressions import Table, boolean, numeric, profile_of
from support.seeds import seeded

N = 8000
LEVELS = ("a", "b", "c")
SHARES = (0.05, 0.5, 0.45)  # of the records
COLUMNS = (
    numeric("x", -9, 9),
    boolean("d"),
    Column("g", ColumnKind.CATEGORICAL, 0, 2, LEVELS),
)


def people(seed: int, log_odds: tuple[float, float, float]) -> Table:
    """400 records of level a, and of each level as many events as these log odds say."""
    rng = seeded(seed)
    g = np.repeat(range(3), [round(share * N) for share in SHARES])
    x, d = rng.normal(size=N), (rng.random(N) < 0.4) * 1.0
    chance, y = expit(np.array(log_odds)[g] + 0.5 * x + 0.3 * d), np.zeros(N)
    for level in range(3):
        own, p = np.flatnonzero(g == level), chance[g == level]
        y[rng.choice(own, round(p.sum()), replace=False, p=p / p.sum())] = 1.0
    return {"x": x, "d": d, "g": g * 1.0, "y": y}


def facts(table: Table, y: Column) -> DatasetFacts:
    profile = profile_of(table, [c for c in (*COLUMNS, y) if not c.levels], {"g": 3})
    return DatasetFacts("t", "t", 1, "v", N, Schema((*COLUMNS, y)), Profile(profile.columns))


def estimable(result: Any) -> dict[str, bool]:
    return dict(zip(result["terms"], result["estimable"], strict=True))


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("sign", [1, -1], ids=["events", "other records"])
def test_a_reference_level_of_few_events_declines_what_is_compared_with_it(
    epsilon: float, sign: int
) -> None:
    """3 events of 400 at the reference level, 900 in all; or 3 records without one."""
    table = people(1, (-5.0, -2.0, -2.0))
    if sign < 0:
        table["y"] = 1 - table["y"]
    known = facts(table, boolean("y"))
    planned = plan(known, Glm("y ~ x + d + g", "binomial"), offer(epsilon))
    result = answer(planned, table)
    assert estimable(result) == {
        "Intercept": False, "x": True, "d": True, "g[b]": False, "g[c]": False,
    }  # fmt: skip
    assert any("too few events" in said and "g[b]" in said for said in result["warnings"])
    assert not any("collinear" in said for said in result["warnings"])


def test_with_a_frequent_reference_only_the_sparse_level_is_declined() -> None:
    table = people(2, (-5.0, -2.0, -2.0))
    known = facts(table, boolean("y"))
    query = Glm('y ~ x + d + C(g, ref="b")', "binomial")
    found = estimable(answer(plan(known, query, offer(4.0)), table))
    assert sorted(found.values()) == [False, True, True, True, True]
    (lost,) = (name for name, ok in found.items() if not ok)
    assert "[a]" in lost


def test_levels_with_events_keep_their_intervals() -> None:
    table = people(3, (-1.0, -2.0, -2.0))
    found = answer(
        plan(facts(table, boolean("y")), Glm("y ~ x + d + g", "binomial"), offer(4.0)), table
    )
    assert all(found["estimable"])
    assert not any("too few events" in said for said in found["warnings"])


def test_a_plan_knows_it_where_the_profile_says_how_rare_a_level_is() -> None:
    table = people(1, (-2.0, -2.0, -2.0))
    planned = plan(facts(table, boolean("y")), Glm("y ~ x + d + g", "binomial"), offer(0.5))
    told = [ratio is not None for ratio in planned.forecast["privacy_to_sampling"]]
    assert told == [False, True, True, False, False]


def test_each_row_counts_the_least_curvature_that_is_likely() -> None:
    """Of a logit p(1 − p) at the end of the interval that is further from p = ½."""
    table = people(5, (-5.0, -2.0, -2.0))
    planned = plan(facts(table, boolean("y")), Glm("y ~ x + d + g", "binomial"), offer(4.0))
    assert isinstance(planned, FitPlan)
    newton = planned.newton
    start = unwhitened(newton.coordinates, newton.sizes.radius_squared)
    model, score = newton.public_model(start), newton.family.score(1.0, 0)
    eta = model.predictor(score, start.inside(newton.start))
    for sd in (0.0, 0.5):
        C = sd**2 * np.eye(newton.sizes.size)
        found = least_curvatures(model, score, start.inside(newton.start), C)
        far = np.abs(eta) + 1.96 * sd * np.linalg.norm(model.whitening.rows, axis=1)
        far = np.minimum(far, np.abs(score.limits).max())
        at = score.expected(-far, np.zeros(len(far)))
        np.testing.assert_allclose(found, at, rtol=0.02)


def test_of_a_linear_regression_records_count() -> None:
    """Level a has 400 records of 8,000 in which y is rare: no matter here."""
    table = people(4, (-5.0, -2.0, -2.0))
    table["y"] = table["y"] + seeded(5).normal(size=N)
    known = facts(table, numeric("y", -9, 9))
    query = LinearRegression("y ~ x + d + g", loss="huber")
    assert all(answer(plan(known, query, offer(4.0)), table)["estimable"])
    few = np.flatnonzero(table["g"] == 0)[24:]
    table["g"][few] = 1.0
    known = facts(table, numeric("y", -9, 9))
    found = estimable(answer(plan(known, query, offer(20.0)), table))
    assert found == {"Intercept": False, "x": True, "d": True, "g[b]": False, "g[c]": False}
