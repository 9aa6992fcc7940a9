# SPDX-License-Identifier: Apache-2.0
"""Group–time effects in the client, and honest intervals against brute force."""

from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from reticent.kinds.staggered_did import StaggeredDidResults
from reticent.results.honest import DynamicEffects, relative_interval, smoothness_interval
from support.seeds import seeded

mpl.use("Agg")
V = 0.01 * (np.eye(5) + 1.0)


def effect(value: float) -> dict[str, Any]:
    return {
        "value": value,
        "standard_error": 0.2,
        "privacy_standard_error": 0.1,
        "confidence_interval": [value - 0.4, value + 0.4],
    }


def by(at: list[int], values: list[float]) -> dict[str, Any]:
    k = len(at)
    return {
        "at": at,
        "effects": [effect(v) for v in values],
        "covariance": V[:k, :k].tolist(),
        "overall": effect(1.5),
    }


def released(**result: Any) -> StaggeredDidResults:
    pre = {"statistic": 3.0, "df": 1, "p_value": 0.083}
    rows = [(4, 2, 0.0), (4, 4, 1.0), (4, 5, 2.0)]
    found = {
        "simple": effect(1.4),
        "dynamic": by([-4, -3, -2, 0, 1], [0.0, 0.1, 0.0, 1.0, 2.0]),
        "by_cohort": by([4], [1.5]),
        "calendar": by([4, 5], [1.0, 2.0]),
        "group_time": [{"cohort": c, "period": t, "effect": effect(v)} for c, t, v in rows],
        "pretrend": pre,
    }
    whole = {
        "cohorts": [
            {"start": None, "size": 70.5, "used": True},
            {"start": 4, "size": 40.2, "used": True},
        ],
        "periods": [0, 1, 2, 3, 4, 5],
        "never": found,
        "not_yet": None,
        "radius": 3.0,
        "centre": 0.0,
        "confidence_level": 0.95,
        "estimand": "Average effects",
        "n": 100,
        "warnings": [],
    }
    query = {"kind": "staggered_did", "y": "w", "treatment_time": "s", "time": "t"}
    guarantee = {
        "tier": "unconditional", "unit": "person", "epsilon": 1.0, "delta": 1e-6,
        "mechanism": "m", "statement": "s", "reference": "r", "assumptions": [],
    }  # fmt: skip
    charged = {"epsilon": 1.0, "delta": 1e-6, "rho": 0.01}
    return StaggeredDidResults(
        {
            "id": "r", "dataset": "d", "version": 1, "query": query, "status": "reply",
            "result": whole | result, "guarantee": guarantee, "charged": charged,
            "created_at": "2026-01-01T00:00:00Z",
        }
    )  # fmt: skip


def test_averages_tables_and_the_test_are_those_of_the_controls() -> None:
    found = released()
    found.check()
    assert found.controls() == "never"
    assert found.effect().value == 1.4
    assert found.overall("calendar").value == 1.5
    assert found.averages("calendar")["effect"].tolist() == [1.0, 2.0]
    assert found.table().loc[(4, 5), "effect"] == 2.0
    assert found.cohorts().index.tolist() == ["never", 4]
    test = found.pretrend()
    assert test is not None
    assert test.hypotheses == ("ATT(4, 2) = 0",)
    with pytest.raises(ValueError, match="other ones"):
        found.effect("not_yet")
    with pytest.raises(ValueError, match="no effect"):
        released(never=None).effect()
    assert released(never=None, not_yet=found.result["never"]).controls() == "not_yet"


def test_the_plot_has_the_reference_and_all_times_in_a_band() -> None:
    found = released()
    axes = found.plot()
    assert "since treatment" in axes.get_xlabel()
    band = found.simultaneous()
    own = np.array([0.0, 0.1, 0.0, 1.0, 2.0])
    assert (band[:, 1] - own > ndtri(0.975) * np.sqrt(np.diag(V))).all()
    assert "never treated" in found.summary()
    assert "p = " in found.summary()


EFFECTS = DynamicEffects((-4, -3, -2, 0, 1), np.array([0.0, 0.1, 0.0, 1.0, 2.0]), V)


def test_without_a_change_of_slope_a_line_is_taken_out() -> None:
    """M = 0: generalised least squares of a line before treatment, extrapolated."""
    times = np.array(EFFECTS.times)
    X = np.column_stack([times + 1.0, times == 0, times == 1])
    W = np.linalg.inv(V)
    C = np.linalg.inv(X.T @ W @ X)
    b = C @ X.T @ W @ EFFECTS.values
    for place, at in ((1, 0), (2, 1)):
        half = ndtri(0.975) * np.sqrt(C[place, place])
        low, high = smoothness_interval(EFFECTS, at, 0.0, 0.05)
        assert (low, high) == pytest.approx((b[place] - half, b[place] + half), abs=1e-4)


def worst_trend(rng: Any, M: float) -> Any:
    """A trend whose slope changes by ±M, with any slope at the reference."""
    d = rng.choice([-M, M], 6)
    slopes = rng.normal() * 5 + np.cumsum(d)
    path = np.concatenate([[0.0], np.cumsum(slopes)])  # times −4 … 2
    return (path - path[3])[[0, 1, 2, 4, 5]]


def test_smooth_trends_bias_no_interval_beyond_its_level() -> None:
    """The interval is lᵀτ ± half: exact coverage of normal estimates at the trends
    that are worst."""
    rng = seeded(1)
    M, tau = 0.3, np.array([0.0, 0.0, 0.0, 1.0, 2.0])
    low, high = smoothness_interval(DynamicEffects(EFFECTS.times, tau, V), 1, M, 0.05)
    half, unit = (high - low) / 2, np.eye(5)
    middles = []
    for e in unit:  # the middle is linear in the estimates: its weights
        ends = smoothness_interval(DynamicEffects(EFFECTS.times, e, V), 1, M, 0.05)
        middles.append(sum(ends) / 2)
    a = np.array(middles)
    sd = np.sqrt(a @ V @ a)
    least = 1.0
    for _ in range(300):
        bias = a @ (tau + worst_trend(rng, M)) - 2.0
        least = min(least, float(ndtr((half - bias) / sd) - ndtr((-half - bias) / sd)))
    assert 0.9499 < least < 0.953


def test_relative_trends_grow_with_time() -> None:
    plain = relative_interval(EFFECTS, 0, 0.0, 0.05)
    assert plain[1] - plain[0] == pytest.approx(2 * ndtri(0.9875) * np.sqrt(V[3, 3]))
    one = relative_interval(EFFECTS, 0, 1.0, 0.05)
    later = relative_interval(EFFECTS, 1, 1.0, 0.05)
    grown = (one[1] - one[0]) - (plain[1] - plain[0])
    zero = relative_interval(EFFECTS, 1, 0.0, 0.05)
    assert (later[1] - later[0]) - (zero[1] - zero[0]) == pytest.approx(2 * grown)
    largest = max(0.1, 0.1) + ndtri(0.975) * np.sqrt(0.02)
    assert grown / 2 > largest


@pytest.mark.slow
def test_a_breakdown_value_is_where_the_interval_reaches_zero() -> None:
    found = released()
    for trends in ("smoothness", "relative"):
        M = found.breakdown(trends, 1)  # type: ignore[arg-type]
        low, _ = found.honest(M, trends, 1)  # type: ignore[arg-type]
        assert 0 <= low < 0.02
    nothing = by([-2, 0], [0.0, 0.01])
    none = released(never=found.result["never"] | {"dynamic": nothing})
    assert none.breakdown("relative") == 0.0
    with pytest.raises(ValueError, match="negative"):
        found.honest(-1.0)
    with pytest.raises(ValueError, match="one of the times"):
        found.honest(1.0, at=7)
    with pytest.raises(ValueError, match="none left out"):
        DynamicEffects((-3, 0), np.zeros(2), np.eye(2))
