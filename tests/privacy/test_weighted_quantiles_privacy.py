# SPDX-License-Identifier: Apache-2.0
"""Weighted quantiles and regression quantiles, attacked: exact laws of neighbours on small tables,
and records of every weight, within what the noise is made for and as far.
"""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.design import ColumnWeight
from reticent_server.domain.grid import Grid
from reticent_server.domain.steps import GramSum, QuantileTree, SumStep, VectorSum
from reticent_server.kinds import registry
from reticent_server.kinds.quantile_regression.plan import plan_quantile_regression
from reticent_server.kinds.quantile_regression.score import WeightedQuantileResidual
from reticent_server.kinds.quantiles.kind import Quantiles
from reticent_server.mechanisms import quantile_tree
from support.attacks.privacy_losses import farthest_records
from support.attacks.selection_laws import tree_law, worst_rho
from support.fits.regressions import drive, facts_of, numeric, plain_design, profile_of, whole
from support.kinds.named_tests import offer, people_facts
from support.seeds import seeded

WHOLE = 1 << 26
FOUR = Grid(1.0, 4.0, integers=True)
WEIGHTS = (0.3, 1.0, 7.0)


def tree(asked: tuple[float, ...], rho: int) -> QuantileTree:
    return QuantileTree(FOUR, asked, rho, weighted=True)


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("asked", [(0.5,), (0.25, 0.5, 0.75)])
def test_records_of_any_weight_cost_what_is_charged_on_small_tables(
    asked: tuple[float, ...],
) -> None:
    """Three records, of whom one is any record of any weight: the exact loss is within ρ, and near
    it.
    """
    part = tree(asked, 2 * RHO_UNITS)
    any_record = [np.array([[cell], [a]]) for cell, a in product((0.0, 1, 3), WEIGHTS)] + [
        np.array([[-1.0], [1.0]])
    ]
    worst = 0.0
    for cells, a in (([0.0, 2, 3], [1.0, 1, 1]), ([1.0, 2, 2, 2], [0.5, 1, 1, 1])):
        fixed = np.array([cells, a])
        tables = [quantile_tree.encode(part, np.hstack([fixed, each])) for each in any_record]
        laws = [tree_law(part, counts) for counts in tables]
        points = sorted(set().union(*laws))
        arrays = [np.array([law.get(k, 0.0) for k in points]) for law in laws]
        for p, q in product(range(len(laws)), repeat=2):
            worst = max(worst, worst_rho(arrays[p], arrays[q]) if p < q else 0.0)
    assert 0.2 * part.rho < worst * RHO_UNITS <= part.rho


def test_a_record_weighs_one_at_most_whatever_the_map_gives() -> None:
    codes = np.array([[0, 0, 1, 3, np.nan, -1, 9, 2], [1, 0.25, 7, -2, 1, 1, 1, np.nan]])
    found = quantile_tree.encode(tree((0.5,), RHO_UNITS), codes)
    assert found.tolist() == [WHOLE + WHOLE // 4, WHOLE, 0, 0]
    with pytest.raises(ValueError, match="one of each row"):
        quantile_tree.encode(tree((0.5,), RHO_UNITS), codes[0])
    with pytest.raises(ValueError, match="one of each row"):
        quantile_tree.encode(tree((0.5,), RHO_UNITS), np.vstack([codes, codes[0]]))


def test_what_is_billed_is_that_of_persons() -> None:
    """No more than with one row a person, and for one probability no more than of whole records."""
    for asked in ((0.5,), (0.1, 0.5, 0.9)):
        one = quantile_tree.ladder(tree(asked, RHO_UNITS))
        persons = QuantileTree(FOUR, asked, RHO_UNITS, 1, 1, 3, shared=True)
        assert one == quantile_tree.ladder(persons)
    assert quantile_tree.ladder(tree((0.5,), RHO_UNITS)) == quantile_tree.ladder(
        QuantileTree(FOUR, (0.5,), RHO_UNITS)
    )


def test_a_record_that_is_out_of_use_weighs_nothing() -> None:
    plan = registry.plan(people_facts(2000), Quantiles("y", where="x > 0", weights="k"), offer(1))
    step = next(plan.run())
    assert isinstance(step, SumStep)
    block = whole({"y": np.zeros(3), "x": np.array([1.0, -1, 1]), "k": np.array([9.0, 9, 3])})
    (codes,) = step.map_fn(block)
    (part,) = step.parts
    found = quantile_tree.encode(part, np.asarray(codes))  # type: ignore[arg-type]
    assert found.sum() == pytest.approx(WHOLE * (1 + 3 / 9), rel=1e-6)


X, W, Y = numeric("x", -20, 20), numeric("w", 0, 8), numeric("y", -60, 60)


@pytest.mark.slow
def test_no_two_weighted_records_are_farther_apart_than_the_noise_is_made_for() -> None:
    """All parts of a weighted regression quantile; the sums and the scale attain their bounds."""
    rng, n = seeded(2), 300
    x, w = rng.normal(size=n), rng.uniform(0, 8, n)
    data: Any = {"x": x, "w": w, "y": np.clip(x + rng.standard_t(3, n), -60, 60)}
    design = plain_design([X], Y, weight=ColumnWeight("w", 8.0))
    design = replace(design, columns=("x", "y", "w"))
    facts = facts_of(n, [X, W, Y], profile_of(data, [X, W, Y]))
    plan = plan_quantile_regression(facts, design, (0.25,), 0.95, 10**11)
    cells = np.array(
        list(product((-20.0, -1, 0, 1, 20), (-5.0, 0, 2, 8, 900), (-60.0, -1, 0, 1, 60)))
    )
    records = dict(zip("xwy", cells.T, strict=True))
    shares = {VectorSum: 0.0, GramSum: 0.0}
    scales = []
    for step in drive(plan.run(), whole(data)).steps:
        for kind, share in farthest_records(step, records):
            assert share <= 1 + 1e-12
            shares[kind] = max(shares.get(kind, 0.0), share)
            scales += [share] if step.label.startswith("residual scale") else []
    assert min(shares.values()) > 0.9
    assert max(scales) == pytest.approx(1, abs=1e-6)
    assert WeightedQuantileResidual(0.25).part(7, 1) == VectorSum(1, 0.5, 7, 1)
