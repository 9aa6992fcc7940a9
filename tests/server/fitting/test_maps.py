# SPDX-License-Identifier: Apache-2.0
"""What a record contributes: bit-identical in any block, its own affair, and within its clip."""

import pickle
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.design import (
    Apply,
    ColumnValue,
    Compare,
    Design,
    Indicator,
    Term,
)
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.domain.scratch import FRESH
from reticent_server.domain.steps import SumStep, multiplied
from reticent_server.fitting import maps
from reticent_server.fitting.coding import LARGEST
from reticent_server.fitting.huber import (
    MedianResidual,
    PsiScore,
    SquareResidual,
)
from reticent_server.fitting.maps import (
    FitState,
    ResidualMap,
    RowsMap,
    ScoreMap,
    coordinates,
    invertible_on_lattice,
    on_lattice,
    predictor,
    response,
    standardised,
)
from reticent_server.kinds.glm.dispersion import GammaDispersion
from reticent_server.kinds.shared.linear.plan import plan_linear_regression
from reticent_server.numerics.biweight import Biweight
from reticent_server.numerics.evaluate import evaluate_term
from reticent_server.numerics.psi import Huber
from support.fits.glm import glm_table, planned, slopes
from support.fits.regressions import (
    blocks_of,
    boolean,
    drive,
    facts_of,
    numeric,
    profile_of,
    query,
    totals,
    whole,
)
from support.seeds import seeded

N = 10_000
X, Z = ColumnValue("x"), ColumnValue("z")
G = Column("g", ColumnKind.CATEGORICAL, 0.0, 4.0, tuple("abcde"))
COLUMNS = [numeric("x", -40, 90), numeric("z", 0.1, 5000), boolean("d"), G, numeric("y")]


def rich_design(where: Any = None, missing: Any = ()) -> Design:
    """log, sqrt, a product, a common and rare dummies, a mask."""
    terms = (
        Term("x", (X,), -40, 90),
        Term("log(z)", (Apply("log", Z),), -3, 9),
        Term("x:sqrt(z)", (X, Apply("sqrt", Z)), -4000, 9000),
        Term("d", (ColumnValue("d"),), 0, 1, dummy=True),
        *(Term(f"C(g)[{c}]", (Indicator("g", c),), 0, 1, dummy=True) for c in (1.0, 2.0, 3.0, 4.0)),
    )
    y = Term("y", (ColumnValue("y"),), -1000, 1000)
    return Design(y, terms, True, where, ("x", "z", "d", "g", "y"), missing)


def rich_table(seed: int = 0) -> dict[Any, Any]:
    rng = seeded(seed)
    x, z = rng.normal(10, 5, N).clip(-40, 90), rng.lognormal(1, 1, N).clip(0.1, 5000)
    x[:20], z[20:40] = 90, 5000
    return {
        "x": x,
        "z": z,
        "d": (rng.random(N) < 0.4).astype(float),
        "g": rng.choice(5, p=[0.9, 0.04, 0.03, 0.02, 0.01], size=N).astype(float),
        "y": x + np.log(z) + rng.standard_t(2, N),
    }


def rich_plan(design: Any) -> Any:
    table = rich_table()
    profile = profile_of(table, [c for c in COLUMNS if c is not G], {"g": 5})
    return plan_linear_regression(facts_of(N, COLUMNS, profile), design, query(), 10**10)


def rich_maps(design: Any) -> list[Any]:
    """Maps of every kind at a generic public point."""
    coding = rich_plan(design).ground.coding
    q, rng = coding.size, seeded(7)
    W = np.eye(q) + 0.3 * rng.normal(size=(q, q))
    theta, shift = rng.normal(size=q), 0.1 * rng.normal(size=q)
    scores = PsiScore(Huber(1.0), 0.37), PsiScore(Biweight(), 0.5)
    huber, biweight = (FitState(theta, W, 2.0 * q, score) for score in scores)
    return [
        RowsMap(coding, W, 4.0 * q, count=True),
        ScoreMap(coding, huber, np.zeros(q)),
        ScoreMap(coding, huber, shift),
        ScoreMap(coding, biweight, np.zeros(q), curvature=True, meat=True),
        ResidualMap(coding, huber, MedianResidual()),
        ResidualMap(coding, huber, SquareResidual()),
    ]


def gamma_maps() -> tuple[Any, Any]:
    """The joint last step of the Gamma family, whose leverages and limits the linear models do not
    have.
    """
    table = glm_table("gamma", N, seeded(0))
    plan = planned(table, slopes(3), "gamma", 10**10)
    q, score = plan.ground.coding.size, plan.newton.family.score(0.7, 0)
    point = FitState(0.1 * np.ones(q), np.eye(q), 2.0 * q, score)
    scores = ScoreMap(plan.ground.coding, point, np.zeros(q), True, True, GammaDispersion())
    return [scores, ResidualMap(plan.ground.coding, point, plan.newton.family.residuals)], table


MASKS = {
    "all": rich_design(),
    "where": rich_design(where=Compare("x", ">", 8.0)),
    "missing": rich_design(missing=("z",)),
}


def block(seed: int = 0) -> Any:
    return whole(rich_table(seed), {"z": np.arange(N) % 5 == 0})


def arrays_of(map_fn: Any, data: Any) -> Any:
    """The contributions, multiplied out."""
    with np.errstate(invalid="ignore"):
        return tuple(map(multiplied, map_fn(data)))


@pytest.mark.sample(10)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("rows", [1, 64, 8192])
def test_contributions_do_not_depend_on_the_block_size(mask: str, rows: int) -> None:
    data = block()
    if rows == 1:
        data = next(blocks_of(data, 300))
    for map_fn in rich_maps(MASKS[mask]):
        same_in_pieces(map_fn, data, rows)


@pytest.mark.parametrize("rows", [64, 8192])
def test_nor_those_of_a_joint_step(rows: int) -> None:
    maps, table = gamma_maps()
    for map_fn in maps:
        same_in_pieces(map_fn, whole(table), rows)


def same_in_pieces(map_fn: Any, data: Any, rows: Any) -> None:
    everything = arrays_of(map_fn, data)
    pieces = [arrays_of(map_fn, piece) for piece in blocks_of(data, rows)]
    for k, values in enumerate(everything):
        joined = np.concatenate([piece[k] for piece in pieces], axis=-1)
        np.testing.assert_array_equal(joined, values)
        assert values.flags.c_contiguous


@pytest.mark.sample(4)
@pytest.mark.parametrize("rows", [64, 8192])
def test_the_sums_of_a_whole_fit_do_not_depend_on_the_block_size(rows: int) -> None:
    data = block()
    for step in steps_of(rich_plan(MASKS["where"]), data):
        assert isinstance(step, SumStep)
        for a, b in zip(totals(step, data), totals(step, data, rows), strict=True):
            np.testing.assert_array_equal(a, b)


def steps_of(plan: Any, data: Any) -> Any:
    return drive(plan.run(), data).steps


def test_a_record_does_not_depend_on_the_others() -> None:
    first, second = block(0), block(1)
    mixed = whole({k: v.copy() for k, v in second.columns.items()}, first.missing)
    for name, values in first.columns.items():
        mixed.columns[name][1234] = values[1234]
    for map_fn in rich_maps(MASKS["all"]):
        for a, b in zip(arrays_of(map_fn, first), arrays_of(map_fn, mixed), strict=True):
            np.testing.assert_array_equal(a[..., 1234], b[..., 1234])


@pytest.mark.parametrize("mask", ["where", "missing"])
def test_records_out_of_use_contribute_nothing(mask: str) -> None:
    """But the shift of a gradient's ball, a constant that every record adds."""
    data = block()
    out = data.columns["x"] <= 8 if mask == "where" else data.missing["z"]
    for map_fn in rich_maps(MASKS[mask]):
        shift = map_fn.shift if isinstance(map_fn, ScoreMap) else np.zeros(1)
        for k, values in enumerate(arrays_of(map_fn, data)):
            if values.ndim == 1:
                np.testing.assert_array_equal(values[out], -1)
                assert (values[~out] >= 0).mean() > 0.005
                continue
            moved = shift[:, None] if k == 0 else 0.0
            assert np.all(values[:, out] == moved)
            assert np.any(values[:, ~out] != 0, axis=0).mean() > 0.2


def test_the_formulas() -> None:
    """x̃, u = Wx̃, η, and w v q with w = min(1, R²/‖u‖²), against plain floats."""
    data, made = block(), rich_maps(MASKS["all"])
    rows, score, moved, last, _, square = made
    coding, point = score.coding, score.point
    x = standardised(coding, data)
    terms = [evaluate_term(term, data) for term in coding.design.terms]
    plain = np.vstack([np.ones(N), *terms]) - coding.centres[:, None]
    plain = np.clip(plain / coding.scales[:, None], -LARGEST, LARGEST)
    np.testing.assert_allclose(x, plain, atol=2**-20)
    where = coding.response_location
    y = (data.columns["y"] - where.centre) / where.scale
    np.testing.assert_allclose(response(coding, data), y, rtol=1e-12, atol=1e-12)
    eta = predictor(point, coding, x, data)
    np.testing.assert_allclose(eta, point.theta @ plain, atol=1e-3)
    u = coordinates(point.transform, x)
    np.testing.assert_allclose(u, point.transform @ plain, atol=1e-3)
    norms = np.sum(u**2, axis=0)
    w = np.minimum(1, point.radius_squared / norms)
    expected = u * w * np.clip((y - eta) / 0.37, -1, 1)
    (found,) = arrays_of(score, data)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    np.testing.assert_allclose(
        arrays_of(moved, data)[0], expected + moved.shift[:, None], atol=1e-9
    )
    clipped = u * np.sqrt(np.minimum(1, rows.radius_squared / norms))
    np.testing.assert_allclose(arrays_of(rows, data)[0], clipped, atol=1e-9)
    z = (y - eta) / 0.5
    q, h = Biweight().psi(z), Biweight().derivative(z)
    first, root, meat = last(data)
    np.testing.assert_allclose(multiplied(first), u * w * q, atol=1e-9)
    np.testing.assert_array_equal(multiplied(meat), multiplied(first))
    np.testing.assert_allclose(np.sign(root.weights) * root.weights**2, w * h, atol=1e-9)
    k = square.residuals.k
    expected = np.minimum(((y - eta) / 0.37) ** 2, k**2) - k**2 / 2
    np.testing.assert_allclose(square(data)[0][0], expected, atol=1e-9)


def test_lattice_products_are_exact() -> None:
    rng = seeded(0)
    for q in (2, 11, 60):
        W = on_lattice(rng.normal(size=(q, q)) * np.exp(rng.normal(size=(q, q))), q)
        x = np.round(rng.uniform(-LARGEST, LARGEST, (q, 500)) * 2**20) / 2**20
        np.testing.assert_array_equal(W @ x, (W[:, ::-1] @ x[::-1]))
        np.testing.assert_array_equal((W @ x)[:, :1], W @ x[:, :1])


@pytest.mark.parametrize("q", [2, 11, 40])
@pytest.mark.parametrize("ratio", [1.0, 1e4, 1e8, 1e12])
def test_a_transform_stays_invertible_on_the_lattice(q: int, ratio: float) -> None:
    rng = seeded(q)
    left, right = (np.linalg.qr(rng.normal(size=(q, q)))[0] for _ in range(2))
    W = (left * np.geomspace(1, ratio, q)) @ right
    found = invertible_on_lattice(W)
    np.testing.assert_array_equal(on_lattice(found, q), found)
    assert np.linalg.cond(found) < 2.0**22
    assert np.linalg.svd(found)[1][-1] == pytest.approx(1, rel=0.5)
    if ratio == 1:
        np.testing.assert_allclose(found, W, atol=1e-5)


def test_maps_pickle() -> None:
    data = block()
    for map_fn in rich_maps(MASKS["where"]):
        again = pickle.loads(pickle.dumps(map_fn))
        for a, b in zip(arrays_of(map_fn, data), arrays_of(again, data), strict=True):
            np.testing.assert_array_equal(a, b)


def test_values_that_are_not_finite_do_not_touch_other_records() -> None:
    data = block()
    bad = whole({k: v.copy() for k, v in data.columns.items()})
    bad.columns["z"][5] = np.nan
    bad.columns["x"][6] = np.inf
    bad.columns["z"][7] = -1.0
    others = np.ones(N, dtype=bool)
    others[5:8] = False
    for map_fn in rich_maps(MASKS["all"]):
        for a, b in zip(arrays_of(map_fn, data), arrays_of(map_fn, bad), strict=True):
            np.testing.assert_array_equal(a[..., others], b[..., others])


@pytest.mark.parametrize("largest", [1e-3, 1.0, 1e6])
def test_the_predictor_has_a_lattice_of_its_own(largest: float) -> None:
    """However long W is: θ stays what the step says, and products are exact."""
    rng = seeded(3)
    x = np.round(rng.uniform(-LARGEST, LARGEST, (5, 4100)) * 2**20) / 2**20
    theta, W = rng.normal(size=5), largest * rng.normal(size=(5, 5))
    point = FitState(theta, W, 20.0, PsiScore(Huber(1.0), 1.0))
    u, linear = maps._with_predictor(point, x, FRESH)
    np.testing.assert_array_equal(u, on_lattice(W, 5) @ x)
    np.testing.assert_array_equal(linear, on_lattice(theta, 5) @ x)
