# SPDX-License-Identifier: Apache-2.0
"""Sums of scores by cluster, attacked: no two records are farther apart than is billed, in one
cluster or between two, and some are as far.
"""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.steps import CountSum, GramSum, VectorSum
from reticent_server.fitting.cluster_scores import ClusterScoreMap
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.mechanisms.quantise import granule
from support.attacks.privacy_losses import farthest_records, sensitivity
from support.fits.clusters import G, asked, clustered_table
from support.fits.regressions import totals, whole

QUERIES = {
    "squared": LinearRegression("y ~ x + z", loss="squared", cluster="g"),
    "huber": LinearRegression("y ~ x + z", cluster="g"),
    "weights": LinearRegression("y ~ x + z", loss="squared", weights="w", cluster="g"),
    "binomial": Glm("b ~ x + z", "binomial", target="likelihood", cluster="g"),
    "poisson": Glm("c ~ x + z", "poisson", target="likelihood", cluster="g"),
    "gamma": Glm("a ~ x + z", "gamma", target="likelihood", cluster="g"),
    "two": LinearRegression("y ~ x + z", loss="squared", cluster=("g", "t")),
    "strata": LinearRegression("y ~ x + z", loss="squared", cluster="g", strata="h"),
}
ONE_SIDED = {"binomial", "poisson", "gamma"}  # scores that are .47 of C the other way

NEAR = np.linspace(1.08, 1.28, 6)
"""Among them rows about as long as the radius, at which a score of both signs is the longest."""


def steps_of(name: str) -> Any:
    """The step of the shift and that of the clusters."""
    return asked(QUERIES[name], 20.0, clustered_table(20_000, 0.05, 1))[1].steps[-2:]


def extreme_records(clusters: tuple[float, ...]) -> dict[str, Any]:
    """Ends of every range, cells that a source may give, and clusters that there are not."""
    ends = (-10.0, 10.0, np.nan)
    places = [*product((-5.0, 5.0), (-5.0, 5.0)), *((t, -t) for t in NEAR)]
    cells = product(ends, places, (0.0, 1.0), (0.0, 2.0), clusters)
    rows = [(y, *place, b, w, g) for y, place, b, w, g in cells]
    y, x, z, b, w, g = np.array(rows).T
    counts = {"c": 4 * np.maximum(y, 0), "a": 6 * np.maximum(y, 0)}
    return {"y": y, "x": x, "z": z, "b": b, "w": w, "g": g, "h": 0 * x, "t": 0 * x} | counts


@pytest.mark.slow
@pytest.mark.sample(16)
@pytest.mark.parametrize("name", QUERIES)
def test_no_two_records_are_farther_apart_than_is_billed_and_some_are_as_far(name: str) -> None:
    shift, step = steps_of(name)
    assert isinstance(step.map_fn, ClusterScoreMap)
    assert [type(part) for part in step.parts[:3]] == [GramSum, VectorSum, CountSum]
    assert step.joint is None
    found = list(farthest_records(step, extreme_records((0.0, 7.0, -1.0))))
    assert all(share <= 1 for _, share in found)
    (_, squares), (_, sums), (_, numbers), *_ = found
    near = name not in ONE_SIDED
    assert sums > (0.98 if near else 0.4)
    assert squares > (0.5 if near else 0.2)
    assert numbers == pytest.approx(1)
    first = list(farthest_records(shift, extreme_records((0.0,))))
    assert all(share <= 1 for _, share in first)
    assert first[0][1] > (0.99 if near else 0.4)


def test_one_cluster_is_as_dear_as_many_and_moving_between_them_costs_less() -> None:
    """In one cluster scores of opposite signs are 2C apart, in two ones √2 C."""
    _, step = steps_of("squared")
    part = step.parts[1]
    assert sensitivity(part) == sensitivity(replace(part, size=part.size // G, groups=1))

    def apart(x: float, first: float, second: float) -> float:
        rows = [{"y": 10.0, "g": first}, {"y": -10.0, "g": second}]
        more = {"x": x, "z": -x, "b": 0.0, "w": 1.0, "h": 0.0}
        each = [whole({k: np.array([v]) for k, v in (r | more).items()}) for r in rows]
        one, other = (totals(step, block)[1].astype(float) for block in each)
        return float(np.linalg.norm(one - other)) / sensitivity(part)

    assert 0.98 < max(apart(x, 3.0, 3.0) for x in NEAR) <= 1
    assert max(apart(x, 3.0, 4.0) for x in NEAR) == pytest.approx(np.sqrt(0.5), abs=0.02)


def test_a_record_is_in_one_cluster_at_most_and_in_none_without_one() -> None:
    _, step = steps_of("squared")
    records = extreme_records((0.0, 5.0, -1.0, 2.5, float(G), np.nan))
    q = step.parts[0].size
    for i in range(0, len(records["y"]), 7):
        squares, sums, numbers = totals(step, whole({k: v[i : i + 1] for k, v in records.items()}))
        places = np.flatnonzero(np.any(sums.reshape(q, G) != 0, axis=0))
        known = records["g"][i] in {0.0, 5.0}
        assert set(places) <= ({int(records["g"][i])} if known else set())
        assert numbers.sum() == known * 1
        assert known or not squares.any()


def test_noise_of_another_scale_is_told() -> None:
    """The sums' noise is √2 C/√ρ in each of 120 entries: .7 and 1.3 of it are told."""
    table = clustered_table(3000, 0.05, 1)
    _, trace = asked(QUERIES["squared"], 1.0, table)
    part, released = trace.steps[-1].parts[1], trace.released[-1][1]  # type: ignore[union-attr]
    assert isinstance(part, VectorSum)
    exact = totals(trace.steps[-1], whole(table))[1] * granule(part)
    expected = np.sqrt(2 / (part.rho / RHO_UNITS)) * part.clip
    assert released.sd == pytest.approx(expected, rel=1e-3)
    spread = float(np.sqrt(np.mean((released.values - exact) ** 2)))
    assert 0.8 * expected < spread < 1.2 * expected
