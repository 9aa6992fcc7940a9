# SPDX-License-Identifier: Apache-2.0
"""A discontinuity: the local linear estimator with its sandwich, intervals with noise, and what is
refused.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.discontinuity.kind import KIND, Discontinuity, local_design
from reticent_server.kinds.discontinuity.local_fit import basis
from reticent_server.mechanisms import noisy_sum
from support.fits.regressions import drive, facts_of, numeric, profile_of, whole
from support.seeds import seeded

N, CUTOFF, WIDTH, JUMP = 20_000, 1.0, 4.0, 0.8
LEVELS = Column("g", ColumnKind.CATEGORICAL, 0.0, 1.0, ("a", "b"))
COLUMNS = [numeric("x", -10, 10), numeric("y", -20, 20)]
Floats = NDArray[np.float64]


def offer(epsilon: float) -> Any:
    class Offer:
        rho = rho_units(epsilon, 1e-6)

    return Offer


def table(seed: int = 0, n: int = N) -> dict[str, Floats]:
    """Lines with other slopes on the sides, JUMP apart at the cut-off, and a bend far away from
    it.
    """
    rng = seeded(seed)
    x = rng.uniform(-10, 10, n)
    y = 0.3 * x - 0.2 * np.maximum(x - CUTOFF, 0) + JUMP * (x >= CUTOFF) + rng.normal(size=n)
    return {"x": x, "y": (y + 2 * (np.abs(x - CUTOFF) > WIDTH)).clip(-20, 20)}


def facts(data: Any, max_rows: int = 1) -> Any:
    return facts_of(len(data["x"]), [*COLUMNS, LEVELS], profile_of(data, COLUMNS), max_rows)


def asked(**more: Any) -> Discontinuity:
    fields = {"y": "y", "running": "x", "cutoff": CUTOFF, "bandwidth": WIDTH} | more
    return Discontinuity(**fields)


def fit(data: Any, epsilon: float, **more: Any) -> Any:
    plan = KIND.plan(facts(data), asked(**more), offer(epsilon))
    return drive(plan.run(), whole(data)).result


def local_linear(data: dict[str, Floats]) -> tuple[Floats, Floats]:
    """Coefficients and sandwich standard errors without privacy."""
    x, y = data["x"], data["y"]
    a = np.clip(1 - np.abs(x - CUTOFF) / WIDTH, 0, 1)
    X = np.column_stack([np.ones(len(x)), x >= CUTOFF, x, np.maximum(x - CUTOFF, 0)])
    B = np.linalg.inv(X.T @ (X * a[:, None]))
    b = B @ X.T @ (a * y)
    scores = X * (a * (y - X @ b))[:, None]
    return b, np.sqrt(np.diag(B @ scores.T @ scores @ B))


def test_it_is_the_local_linear_estimator_with_its_sandwich() -> None:
    data = table()
    result = fit(data, 400.0)
    b, errors = local_linear(data)
    assert np.max(np.abs(np.array(result["coefficients"]) - b) / errors) < 0.3
    np.testing.assert_allclose(result["standard_errors"], errors, rtol=0.1)
    assert result["terms"] == ["Intercept", "x >= 1", "x", "x above 1"]
    kernel = np.clip(1 - np.abs(data["x"] - CUTOFF) / WIDTH, 0, 1)
    assert result["sum_of_weights"] == pytest.approx(kernel.sum(), rel=0.01)
    assert "scores multiplied by max(0, 1 - |x - 1|/4)" in result["estimand"]


def test_order_2_is_the_local_quadratic_estimator() -> None:
    data = table()
    x, y = data["x"], data["y"]
    bent = data | {"y": (y - 0.05 * (x - CUTOFF) ** 2).clip(-20, 20)}
    result = fit(bent, 4000.0, order=2)
    u, above, a = x - CUTOFF, x >= CUTOFF, np.clip(1 - np.abs(x - CUTOFF) / WIDTH, 0, 1)
    X = np.column_stack([np.ones(len(x)), above, x, above * u, u**2, above * u**2])
    B = np.linalg.inv(X.T @ (X * a[:, None]))
    b = B @ X.T @ (a * bent["y"])
    scores = X * (a * (bent["y"] - X @ b))[:, None]
    errors = np.sqrt(np.diag(B @ scores.T @ scores @ B))
    assert result["terms"][4:] == ["(x - 1)^2", "(x above 1)^2"]
    assert abs(result["coefficients"][1] - b[1]) < 0.3 * errors[1]
    assert result["standard_errors"][1] == pytest.approx(errors[1], rel=0.15)


@pytest.mark.parametrize("order", [1, 2])
def test_the_first_look_knows_its_noise(order: int) -> None:
    """G's places and T, in the units of their sums, as the primitive makes it."""
    plan: Any = KIND.plan(facts(table()), asked(order=order), offer(1.0))
    rows = plan.moment_rows
    part = plan._moments_part(rows)
    unit = noisy_sum.noise_sd(part) / noisy_sum.scale(part)
    off = noisy_sum.off_diagonal_scale(part) * unit
    places, of_responses = plan._sds
    on_diagonal = basis(order).on_diagonal
    assert on_diagonal.sum() == order + 1
    assert places[on_diagonal] == pytest.approx(noisy_sum.noise_sd(part), rel=1e-12)
    assert places[~on_diagonal] == pytest.approx(off, rel=1e-6)
    assert of_responses == pytest.approx(off / rows.weight, rel=1e-6)


@pytest.mark.slow
def test_intervals_cover_with_noise() -> None:
    """20 tables at ε = 2, where noise is most of the error; tables and noise are the same in every
    run.
    """
    inside, errors = 0, []
    for seed in range(20):
        result = fit(table(seed), 2.0)
        low, high = result["confidence_intervals"][1]
        inside += low <= JUMP <= high
        errors.append(result["coefficients"][1] - JUMP)
    assert inside >= 16
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(len(errors))


def test_a_record_beyond_the_bandwidth_counts_for_nothing() -> None:
    data = table()
    far = {name: values.copy() for name, values in data.items()}
    outside = np.abs(data["x"] - CUTOFF) >= WIDTH
    far["y"][outside] = 20.0
    plan = KIND.plan(facts(data), asked(), offer(400.0))
    results = [drive(plan.run(), whole(d)).result for d in (data, far)]
    first, second = (np.array(r["coefficients"]) for r in results)
    assert np.max(np.abs(first - second) / results[0]["standard_errors"]) < 0.3


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"y": "x"}, "different columns"),
        ({"y": "g"}, "no mean"),
        ({"running": "g"}, "no mean"),
        ({"running": "nope"}, "a column that the data set does not have"),
        ({"cutoff": 10.0}, "both sides"),
        ({"cutoff": -11.0}, "both sides"),
        ({"bandwidth": 21.0}, "wider"),
        ({"bandwidth": 1e-6}, "at least a millionth"),
    ],
)
def test_refusals_say_what_to_change(more: Any, words: str) -> None:
    with pytest.raises(InvalidQuery, match=words):
        local_design(facts(table(n=100)), asked(**more))


def test_tables_of_persons_are_refused() -> None:
    with pytest.raises(InvalidQuery, match="one row"):
        local_design(facts(table(n=100), max_rows=3), asked())
