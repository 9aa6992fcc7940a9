# SPDX-License-Identifier: Apache-2.0
"""Power with noise: statsmodels' without it, and the share of simulated tests that reject with
it.
"""

from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import FTestAnovaPower, TTestIndPower, TTestPower

import reticent
from reticent import _power
from reticent._plan import Plan
from reticent_server.kinds import registry
from reticent_server.kinds.anova.kind import Anova
from reticent_server.kinds.correlation.kind import Correlation
from reticent_server.kinds.log_rank.kind import LogRank
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.kinds.t_test.kind import TTest
from support.attacks.seeded_noise import seed_noise
from support.fits.regressions import drive, whole
from support.kinds.named_tests import offer, people_facts
from support.seeds import seeded
from support.tables import follow_up

N = 2000
SIX_SD = 6  # of the share that rejects: by chance less than once in 10⁸
TRIALS = 300
SD = 2**0.5  # of the profile's y


def planned(forecast: dict[str, Any]) -> Plan:
    content = {
        "dataset": "d",
        "version": 1,
        "query": {"kind": "t_test"},
        "cost": {"epsilon": 1.0, "delta": 0.0},
        "deadline_ms": 1,
        "forecast": forecast,
    }
    return Plan(**content, guarantee=None)  # type: ignore[arg-type]


def solve(query: dict[str, Any], forecast: Any, n: int = N, **more: Any) -> _power.Power:
    given = {"effect_size": None, "epsilon": None, "nobs": None, "power": None, "alpha": 0.05}
    design = _power.design_of(query, n, more.pop("sd", 1.0), more.pop("term", None), 3)
    return _power.solved(design, forecast, **{**given, **more})


def quiet(_: float) -> Plan:
    return planned({"privacy_standard_error": 0.0, "privacy_to_sampling": [0.0], "terms": ["x"]})


def test_without_noise_it_is_that_of_statsmodels() -> None:
    two = solve({"kind": "t_test", "group": "g"}, quiet, effect_size=0.12, epsilon=1.0)
    assert two.power == pytest.approx(TTestIndPower().power(0.12, N / 2, 0.05), abs=2e-3)
    one = solve({"kind": "t_test"}, quiet, effect_size=0.05, epsilon=1.0)
    assert one.power == pytest.approx(TTestPower().power(0.05, N, 0.05), abs=2e-3)
    several = solve({"kind": "anova", "group": "g"}, quiet, effect_size=0.07, epsilon=1.0)
    assert several.power == pytest.approx(FTestAnovaPower().power(0.07, N, 0.05, 3), abs=2e-3)
    assert several.power == several.power_without_noise
    records = solve({"kind": "correlation"}, quiet, effect_size=0.1, epsilon=1.0, power=0.8)
    assert (records.solved, round(records.nobs)) == ("nobs", pytest.approx(777, abs=3))


def noisy(epsilon: float) -> Plan:
    return planned({"privacy_standard_error": 0.05 / epsilon})


def test_what_is_left_out_is_solved_for() -> None:
    query = {"kind": "t_test", "group": "g"}
    found = solve(query, noisy, effect_size=0.2, power=0.8)
    assert found.solved == "epsilon"
    again = solve(query, noisy, effect_size=0.2, epsilon=found.epsilon)
    assert again.power == pytest.approx(0.8, abs=0.01)
    assert again.noise == pytest.approx(0.05 / found.epsilon / 2 * np.sqrt(N))
    assert again.power_without_noise > again.power
    effect = solve(query, noisy, epsilon=found.epsilon, power=0.8)
    assert effect.effect_size == pytest.approx(0.2, rel=0.01)
    records = solve(query, noisy, epsilon=found.epsilon, power=0.8, effect_size=0.2)
    assert records.nobs == pytest.approx(N, rel=0.02)
    assert np.isnan(solve(query, noisy, effect_size=0.001, power=0.8).epsilon)
    more = solve(query, noisy, effect_size=0.05, epsilon=0.5, nobs=4 * N)
    noise = 0.05 / 0.5 / 2 * np.sqrt(N) / 2
    assert more.noise == pytest.approx(noise)
    root = np.sqrt(4 * N * 0.05**2 / 4 / (1 + noise**2))
    assert more.power == pytest.approx(stats.norm.sf(1.959964 - root), abs=1e-3)
    assert "power without noise" in str(found)
    assert found._repr_html_()


REFUSED: dict[str, dict[str, Any]] = {
    "no standard deviation": {"sd": None, "effect_size": 0.1, "epsilon": 1.0},
    "two left out": {"effect_size": 0.1},
    "all given": {"effect_size": 0.1, "epsilon": 1.0, "power": 0.8, "nobs": 100},
    "a power below alpha": {"effect_size": 0.1, "power": 0.01},
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_known_is_asked_for(name: str) -> None:
    with pytest.raises(reticent.InvalidQuery):
        solve({"kind": "t_test", "group": "g"}, quiet, **REFUSED[name])


def test_kinds_terms_and_correlations_are_checked() -> None:
    with pytest.raises(reticent.InvalidQuery, match="count is none of them"):
        solve({"kind": "count"}, quiet, effect_size=0.1, epsilon=1.0)
    with pytest.raises(reticent.InvalidQuery, match="term="):
        solve({"kind": "linear_regression"}, quiet, effect_size=0.1, epsilon=1.0, term="z")
    with pytest.raises(reticent.InvalidQuery, match="between -1 and 1"):
        solve({"kind": "correlation"}, quiet, effect_size=1.0, epsilon=1.0)


def tables(seed: int) -> dict[str, Any]:
    """d = .25 between the groups of b, f = .1 between those of g, a correlation of .1 of y and
    x.
    """
    rng = seeded(seed)
    b, g = (rng.integers(0, k, N).astype(float) for k in (2, 3))
    x = np.clip(rng.normal(size=N), -5, 5)
    y = rng.normal(size=N) + 0.25 * (b - 0.5) + 0.1 * np.sqrt(1.5) * (g - 1)
    y = 1 + SD * (y + 0.1 * x)
    return {"y": y, "x": x, "b": b, "g": g, "k": np.zeros(N), "m": np.full(N, 0.5)}


SIMULATED = {
    "t_test": (TTest("y", "b"), {"group": "b"}, 0.25, 0.5),
    "anova": (Anova("y", "g"), {"group": "g"}, 0.1, 1.0),
    "correlation": (Correlation(("y", "x")), {}, 0.1, 1.0),
}


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("kind", SIMULATED)
def test_simulated_tests_reject_as_often(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query, fields, effect, epsilon = SIMULATED[kind]
    share, power = rejected(query, fields, effect, epsilon, kind, TRIALS, monkeypatch)
    assert 0.2 < power < 0.98
    assert abs(share - power) < SIX_SD * np.sqrt(power * (1 - power) / TRIALS)


@pytest.mark.audit
def test_simulated_coefficients_reject_as_often(monkeypatch: pytest.MonkeyPatch) -> None:
    found = rejected(LinearRegression("y ~ x"), {}, 0.1, 0.7, "linear_regression", 300, monkeypatch)
    assert abs(found[0] - found[1]) < SIX_SD * np.sqrt(found[1] * (1 - found[1]) / 300)


def rejected(
    query: Any,
    fields: dict[str, Any],
    effect: float,
    epsilon: float,
    kind: str,
    trials: int,
    patch: pytest.MonkeyPatch,
) -> tuple[float, float]:
    """The share of simulated tables that reject, and the power that was forecast."""
    seed_noise(patch, kind)
    plan = registry.plan(people_facts(N), query, offer(epsilon))
    found = solve(
        {"kind": kind} | fields,
        lambda _: planned(dict(plan.forecast)),
        sd=SD,
        effect_size=effect,
        epsilon=epsilon,
    )
    hits = 0
    for seed in range(trials):
        result = drive(plan.run(), whole(tables(seed))).result
        p = result["p_values"][1] if "p_values" in result else result["p_value"]
        hits += p is not None and p < 0.05
    return hits / trials, found.power


def test_a_log_rank_test_needs_schoenfeld_s_events_without_noise() -> None:
    """And with the noise that a plan says, it rejects as often as measured: .83 of 200 tables of
    5,000 at ε = .5 (hazard ratio 1.15, 51 % with the event).
    """
    query = {"kind": "log_rank", "by": "g"}
    design = _power.design_of(query, N, None, None, 2, 0.6)
    given = {"epsilon": 1.0, "power": 0.8, "effect_size": 1.3, "nobs": None, "alpha": 0.05}
    found = _power.solved(design, quiet, **given)  # type: ignore[arg-type]
    events = 4 * (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) ** 2 / np.log(1.3) ** 2
    assert found.nobs * 0.6 == pytest.approx(events, rel=1e-3)
    known = follow_up.facts(5000)
    noise = registry.plan(known, LogRank("t", "e", "g", follow_up.CUTS), follow_up.offer(0.5))
    design = _power.design_of(query, 5000, None, None, 2, 0.51)
    measured = _power.solved(
        design,
        lambda _: planned(dict(noise.forecast)),
        **given | {"power": None, "epsilon": 0.5, "effect_size": 1.15},  # type: ignore[arg-type]
    )
    assert measured.power == pytest.approx(0.83, abs=0.1)
    effect = _power.solved(design, quiet, **given | {"effect_size": None})  # type: ignore[arg-type]
    assert effect.effect_size > 1
    for levels, events_share, message in ((3, 0.5, "two levels"), (2, None, "events=")):
        with pytest.raises(reticent.InvalidQuery, match=message):
            _power.design_of(query, N, None, None, levels, events_share)
