# SPDX-License-Identifier: Apache-2.0
"""Pearson's correlation is of the whole columns, or says that few records decide it."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from reticent_server.fitting import trust
from reticent_server.fitting.trust import words
from reticent_server.kinds.correlation.kind import KIND, Correlation
from reticent_server.kinds.correlation.pearson import interval
from support.kinds.named_tests import facts, offer
from support.kinds.recipes import block_of, numeric, outcome
from support.seeds import seeded

QUIET, BUSY = offer(10**6, 100), offer(1)
NOTHING = (-1.0, 1.0)  # an interval that claims nothing


def ask(table: Any, public: Any, privacy: Any) -> Any:
    return outcome(KIND.plan(public, Correlation(("x", "y")), privacy), block_of(**table))


@pytest.mark.parametrize("slope", [0.0, 2.0, 20.0])
def test_pearsons_is_of_the_whole_of_skewed_columns_or_says_that_it_is_not(slope: float) -> None:
    """At hardly any noise the cut leaves all records in; at epsilon = 1 nothing is claimed."""
    rng = seeded(4)
    x = np.exp(rng.normal(0, 0.9, 20_000))
    table = {"x": x, "y": slope * x + rng.exponential(3, len(x))}
    table = {k: v.clip(0, 400) for k, v in table.items()}
    columns = (numeric("x", 0, 400), numeric("y", 0, 400))
    public = facts(len(x), columns, **table)
    truth = stats.pearsonr(table["x"], table["y"]).statistic
    quiet = ask(table, public, QUIET)
    assert quiet.effect == pytest.approx(truth, abs=0.003)
    assert quiet.effect_interval[0] < truth < quiet.effect_interval[1]
    busy = ask(table, public, BUSY)
    assert busy.effect_interval == NOTHING
    assert busy.p_value == 1
    assert any("spearman" in said for said in busy.warnings)


def test_pearsons_of_columns_that_are_nearly_one_has_the_noise_of_one_less_its_square() -> None:
    """Two rounds of whitening see what their difference is."""
    rng = seeded(7)
    x = rng.normal(size=20_000)
    table = {"x": x, "y": x + 0.1 * rng.normal(size=len(x))}
    public = facts(len(x), (numeric("x", -9, 9), numeric("y", -9, 9)), **table)
    found = ask(table, public, BUSY)
    truth = stats.pearsonr(table["x"], table["y"]).statistic
    sampling = (1 - truth**2) / np.sqrt(len(x))
    assert found.standard_error < 2 * sampling
    assert abs(found.effect - truth) < 6 * sampling


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_a_constant_column_has_no_correlation_and_one_with_itself_has(epsilon: float) -> None:
    """The noise of a variance is not a variance; without a profile."""
    rng = seeded(11)
    x = rng.normal(size=9000)
    columns = (numeric("x", -9, 9), numeric("y", 0, 10))
    still = {"x": x, "y": np.full(len(x), 5.0)}
    for _ in range(8):
        found = ask(still, facts(len(x), columns), offer(epsilon))
        assert found.effect_interval == NOTHING
        assert found.warnings == (words.CONSTANT,)
    same = ask({"x": x, "y": 5 + x.clip(-4, 4)}, facts(len(x), columns), offer(epsilon))
    assert same.warnings != (words.CONSTANT,)


@pytest.mark.parametrize("half", [0.001, 0.1, 3.0])
@pytest.mark.parametrize("r", [-0.99, 0.0, 0.6])
def test_an_interval_ends_where_its_own_error_reaches(r: float, half: float) -> None:
    low, high = interval(r, half)
    k = half / (1 - r * r)
    assert -1 <= low < r < high <= 1
    assert (r - low, high - r) == pytest.approx((k * (1 - low**2), k * (1 - high**2)), rel=1e-6)


@pytest.mark.slow
def test_errors_are_those_of_the_estimates() -> None:
    """Over 120 tables of pairs whose kurtosis is not that of a normal law."""
    rng = seeded(9)

    def make() -> dict[str, Any]:
        x, e = rng.uniform(-1, 1, (2, 4000))
        return {"x": x * abs(x), "y": x + 0.5 * e}

    public = facts(4000, (numeric("x", -1, 1), numeric("y", -2, 2)), **make())
    truth = np.mean([stats.pearsonr(*make().values()).statistic for _ in range(50)])
    found = [ask(make(), public, BUSY) for _ in range(120)]
    z = np.array([(each.effect - truth) / each.standard_error for each in found])
    assert abs(z.mean()) < 0.5
    assert 0.7 < z.std() < 1.35


@pytest.mark.parametrize(
    ("bulk", "alpha", "skewed", "told"),
    [
        (1.5, 1.6, True, True),
        (1.3, 3.0, False, False),
        (1.5, 1.4, False, False),
        (None, 1.6, False, True),
        (None, 2.7, True, False),
        (None, 2.9, True, True),
    ],
)
def test_a_tail_is_told(bulk: float | None, alpha: float, skewed: bool, told: bool) -> None:
    assert trust.squares_told(bulk, alpha, skewed=skewed) is told
