"""What a record contributes: bit-identical in any block, its own affair, and within its clip."""

import pickle
from dataclasses import replace

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
from reticent_server.domain.steps import multiplied
from reticent_server.estimators.newton import plan_linear_regression
from reticent_server.estimators.newton.maps import (
    LARGEST,
    Point,
    ScaleMap,
    ScoreMap,
    coordinates,
    on_lattice,
    residuals,
    standardised,
)
from reticent_server.numerics.psi import Huber
from support_newton import blocks_of, boolean, facts_of, numeric, profile_of, query, totals, whole

N = 10_000
X, Z = ColumnValue("x"), ColumnValue("z")
G = Column("g", ColumnKind.CATEGORICAL, 0.0, 4.0, tuple("abcde"))
COLUMNS = [numeric("x", -40, 90), numeric("z", 0.1, 5000), boolean("d"), G, numeric("y")]


def rich_design(where=None, missing=()):
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


def rich_table(seed=0):
    rng = np.random.default_rng(seed)
    x, z = rng.normal(10, 5, N).clip(-40, 90), rng.lognormal(1, 1, N).clip(0.1, 5000)
    x[:20], z[20:40] = 90, 5000
    return {
        "x": x,
        "z": z,
        "d": (rng.random(N) < 0.4).astype(float),
        "g": rng.choice(5, p=[0.9, 0.04, 0.03, 0.02, 0.01], size=N).astype(float),
        "y": x + np.log(z) + rng.standard_t(2, N),
    }


def rich_plan(design):
    table = rich_table()
    profile = profile_of(table, [c for c in COLUMNS if c is not G], {"g": 5})
    return plan_linear_regression(facts_of(N, COLUMNS, profile), design, query(), 10**10)


def rich_maps(design, meat=True):
    """(step, map) at a generic public point: as the recipe makes them in its last step."""
    plan = rich_plan(design)
    coding, settings = plan.coding, plan.settings
    rng = np.random.default_rng(7)
    W = np.eye(coding.white_size) + 0.3 * rng.normal(size=(coding.white_size,) * 2)
    point = Point(rng.normal(size=coding.size), 0.37, W)
    first = next(plan.run())
    parts = settings.score_parts(settings.steps - 1, plan.sizes)
    score = ScoreMap(coding, point, Huber(1.0), reweighted=True, meat=meat)
    scale = replace(first, parts=(settings.scale_part(0, plan.sizes),))
    return [
        replace(first, parts=parts, map_fn=score),
        replace(scale, map_fn=ScaleMap(coding, point)),
    ]


MASKS = {
    "all": rich_design(),
    "where": rich_design(where=Compare("x", ">", 8.0)),
    "missing": rich_design(missing=("z",)),
}


def block(seed=0):
    return whole(rich_table(seed), {"z": np.arange(N) % 5 == 0})


def arrays_of(map_fn, data):
    """The contributions, multiplied out."""
    with np.errstate(invalid="ignore"):
        return tuple(map(multiplied, map_fn(data)))


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("rows", [1, 64, 8192])
def test_contributions_and_sums_do_not_depend_on_the_block_size(mask, rows):
    data = block()
    if rows == 1:
        data = next(blocks_of(data, 300))
    for step in rich_maps(MASKS[mask]):
        everything = arrays_of(step.map_fn, data)
        pieces = [arrays_of(step.map_fn, piece) for piece in blocks_of(data, rows)]
        for k, values in enumerate(everything):
            joined = np.concatenate([piece[k] for piece in pieces], axis=-1)
            np.testing.assert_array_equal(joined, values)
            assert values.flags.c_contiguous
        for a, b in zip(totals(step, data), totals(step, data, rows), strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_record_does_not_depend_on_the_others():
    first, second = block(0), block(1)
    mixed = whole({k: v.copy() for k, v in second.columns.items()}, first.missing)
    for name, values in first.columns.items():
        mixed.columns[name][1234] = values[1234]
    for step in rich_maps(MASKS["all"]):
        for a, b in zip(arrays_of(step.map_fn, first), arrays_of(step.map_fn, mixed), strict=True):
            np.testing.assert_array_equal(a[..., 1234], b[..., 1234])


def test_contributions_stay_within_their_clips():
    step, _ = rich_maps(MASKS["all"])
    wild = rich_table()
    wild["y"][::2] *= 1e6
    for part, values in zip(step.parts, arrays_of(step.map_fn, whole(wild)), strict=True):
        norms = np.sqrt(np.sum(values**2, axis=0))
        assert norms.max() <= part.clip * (1 + 1e-9)


@pytest.mark.parametrize("mask", ["where", "missing"])
def test_records_out_of_use_contribute_nothing(mask):
    data = block()
    out = data.columns["x"] <= 8 if mask == "where" else data.missing["z"]
    score, scale = rich_maps(MASKS[mask])
    for values in arrays_of(score.map_fn, data):
        assert np.all(values[:, out] == 0)
        assert np.any(values[:, ~out] != 0, axis=0).mean() > 0.99
    np.testing.assert_array_equal(scale.map_fn(data)[0] == -1, out)


def test_the_formulas():
    """u = Wx̃, z = (ỹ − x̃ᵀθ)/s, against plain floats."""
    plan, data = rich_plan(MASKS["all"]), block()
    coding = plan.coding
    score = rich_maps(MASKS["all"])[0].map_fn
    x = standardised(coding, data)
    plain = [np.ones(N)] + [
        (values - where.centre) / where.scale
        for values, (_, where) in zip(design_values(data, coding), coding.columns, strict=True)
    ]
    np.testing.assert_allclose(x, np.clip(plain, -LARGEST, LARGEST), atol=2**-20)
    y = coding.response_location
    expected = (data.columns["y"] - y.centre) / y.scale - score.point.theta @ x
    z = residuals(coding, score.point, data, x)
    np.testing.assert_allclose(z, expected / 0.37, rtol=1e-3, atol=1e-2)
    u = coordinates(coding, score.point.transform, x)
    np.testing.assert_allclose(
        u[: coding.white_size], score.point.transform @ x[: coding.white_size], rtol=1e-3, atol=1e-2
    )


def design_values(data, coding):
    from reticent_server.numerics.evaluate import evaluate_term

    return [evaluate_term(term, data) for term, _ in coding.columns]


def test_lattice_products_are_exact():
    rng = np.random.default_rng(0)
    for q in (2, 11, 60):
        W = on_lattice(rng.normal(size=(q, q)) * np.exp(rng.normal(size=(q, q))), q)
        x = np.round(rng.uniform(-LARGEST, LARGEST, (q, 500)) * 2**20) / 2**20
        np.testing.assert_array_equal(W @ x, (W[:, ::-1] @ x[::-1]))
        np.testing.assert_array_equal((W @ x)[:, :1], W @ x[:, :1])


def test_maps_pickle():
    data = block()
    for step in rich_maps(MASKS["where"]):
        again = pickle.loads(pickle.dumps(step.map_fn))
        for a, b in zip(arrays_of(step.map_fn, data), arrays_of(again, data), strict=True):
            np.testing.assert_array_equal(a, b)


def test_values_that_are_not_finite_do_not_touch_other_records():
    data = block()
    bad = whole({k: v.copy() for k, v in data.columns.items()})
    bad.columns["z"][5] = np.nan
    bad.columns["x"][6] = np.inf
    bad.columns["z"][7] = -1.0
    others = np.ones(N, dtype=bool)
    others[5:8] = False
    for step in rich_maps(MASKS["all"]):
        for a, b in zip(arrays_of(step.map_fn, data), arrays_of(step.map_fn, bad), strict=True):
            np.testing.assert_array_equal(a[..., others], b[..., others])
