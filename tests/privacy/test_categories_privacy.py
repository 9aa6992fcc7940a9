# SPDX-License-Identifier: Apache-2.0
"""Multinomial and ordinal logits, attacked: records at all angles and lengths with every level, at
states that noise may lead to.
"""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.steps import GramSum, VectorSum, multiplied
from reticent_server.kinds.glm.categories.law import Latent, information
from reticent_server.kinds.glm.categories.maps import CategoryMap, CategoryPoint
from reticent_server.kinds.glm.categories.multinomial import Multinomial
from reticent_server.kinds.glm.categories.ordinal import STRETCH, Ordinal
from reticent_server.mechanisms import registry
from support.attacks.privacy_losses import farthest_records, step_loss
from support.fits.categories import people, planned
from support.fits.regressions import drive, totals, whole
from support.seeds import seeded

RHO = 10**11
N = 400
FAMILIES = ("multinomial", "ordinal")


def data_of(seed: Any, family: Any) -> Any:
    return people(seeded(seed), N, family)


def steps_of(plan: Any, data: Any) -> Any:
    return drive(plan.run(), whole(data)).steps


def newton_steps(plan: Any, data: Any) -> Any:
    return [step for step in steps_of(plan, data) if isinstance(step.map_fn, CategoryMap)]


def records(ages: Any = (-6.0, -2.0, 0.0, 2.0, 6.0), doses: Any = (0.0, 2.0, 12.0)) -> Any:
    """Rows from the middle to the bounds in all directions, each with every level."""
    grid = list(product(ages, (0.0, 1.0), doses, (1.0, 2.0), (0.0, 1.0, 2.0, 3.0)))
    columns = np.ascontiguousarray(np.array(grid).T)
    return dict(zip(("age", "arm", "dose", "a", "g"), columns, strict=True))


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("family", FAMILIES)
def test_no_two_records_are_farther_apart_than_the_noise_is_made_for(family: Any) -> None:
    data = data_of(0, family)
    shares = {VectorSum: 0.0, GramSum: 0.0}
    for step in steps_of(planned(data, RHO, family, weights="a"), data):
        for kind, share in farthest_records(step, records()):
            assert share <= 1
            shares[kind] = max(shares.get(kind, 0.0), share)
    assert shares[VectorSum] > 0.5
    assert shares[GramSum] > 0.8


def elsewhere(step: Any, rng: Any, slope: float) -> Any:
    """The step at other coefficients and gaps, as noise might lead there."""
    here: CategoryPoint = step.map_fn.point
    theta = slope * rng.normal(size=here.theta.shape) @ here.transform
    spacings = here.law.kept(rng.uniform(-3.0, 1.5, len(here.spacings)))
    point = replace(here, theta=theta, spacings=spacings)
    parts = (
        replace(step.parts[0], clip=point.score_bound),
        replace(step.parts[1], clip=point.information_bound),
        replace(step.parts[2], clip=point.score_bound),
    )
    return replace(step, parts=parts, map_fn=replace(step.map_fn, point=point))


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("family", FAMILIES)
def test_each_bound_is_attained_and_not_exceeded(family: Any) -> None:
    """Wherever noise has led the fit: the proofs' bounds are the largest norms. Ages are fine, so
    that some record's length is the radius, and slopes go from 0, where levels are alike, to where
    one is certain.
    """
    data, rng, largest = data_of(1, family), seeded(2), np.zeros(3)
    step = newton_steps(planned(data, RHO, family), data)[-1]
    pool = whole(records(np.linspace(-6, 6, 161), (0.0, 1.0, 4.0)))
    for trial in range(24):
        moved = elsewhere(step, rng, trial / 12)
        norms = [
            float(np.sqrt((multiplied(c) ** 2).sum(axis=0)).max()) / part.clip
            for part, c in zip(moved.parts, moved.map_fn(pool), strict=True)
        ]
        assert max(norms) <= 1 + 1e-3  # a maximum on a grid misses less; the primitive clips it
        largest = np.maximum(largest, norms)
    assert (largest > 0.97).all(), largest


@pytest.mark.parametrize("levels", [3, 5, 10])
def test_the_laws_bounds_hold_for_every_probability(levels: int) -> None:
    """By brute force over laws of levels: shares from even to one level certain, gaps from narrow
    to wide.
    """
    rng, law, worst = seeded(4), Multinomial(levels), np.zeros(2)
    for width in (0.5, 2.0, 8.0):
        at = Latent(width * rng.normal(size=(levels - 1, 4000)), np.zeros(0))
        p, s = law.cells(at)
        score = np.sqrt((s**2).sum(axis=1)).max() / law.score_bound(1.0, at.spacings)
        whole_information = np.sqrt((information(p, s) ** 2).sum(axis=(0, 1)))
        share = whole_information.max() / law.information_bound(1.0, at.spacings)
        worst = np.maximum(worst, [score, share])
    assert (worst <= 1 + 1e-9).all()
    assert (worst > 0.95).all()
    ordered = Ordinal(levels, levels // 2 - 1)
    for least in (-6.0, -2.0, 0.0):
        gaps = ordered.kept(rng.uniform(least, 4.0, levels - 2))
        at = Latent(rng.uniform(-25, 25, (1, 20000)), gaps)
        _, s = ordered.cells(at)
        for radius in (1.0, 3.0):
            length = np.sqrt(radius**2 * s[:, 0] ** 2 + (s[:, 1:] ** 2).sum(axis=1)).max()
            bound = ordered.score_bound(radius, gaps)
            assert 0.98 * bound < length <= 1.001 * bound
            assert bound**2 <= radius**2 + STRETCH**2 * (levels - 2) + 1e-9
            assert np.abs(s).max() <= STRETCH + 1e-9


@pytest.mark.parametrize("family", FAMILIES)
def test_records_that_are_not_in_use_contribute_nothing_and_weights_are_shares(family: Any) -> None:
    data, pool = data_of(0, family), records()
    plan = planned(data, RHO, family, where="arm == 1", weights="a")
    outside = {name: values[pool["arm"] == 0] for name, values in pool.items()}
    half, full = ({**pool, "a": np.full(len(pool["g"]), a)} for a in (1.0, 2.0))
    for step in newton_steps(plan, data):
        for contribution in step.map_fn(whole(outside)):
            assert not multiplied(contribution).any()
        for one, two in zip(step.map_fn(whole(half)), step.map_fn(whole(full)), strict=True):
            assert np.allclose(2 * multiplied(one), multiplied(two), rtol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("code", [np.nan, np.inf, -1.0, 0.5, 4.0])
def test_a_code_that_is_no_level_contributes_nothing(family: Any, code: float) -> None:
    data, pool = data_of(0, family), records()
    strange = {**pool, "g": np.where(np.arange(len(pool["g"])) == 7, code, pool["g"])}
    for step in newton_steps(planned(data, RHO, family), data):
        for one, two in zip(step.map_fn(whole(pool)), step.map_fn(whole(strange)), strict=True):
            found, usual = multiplied(two), multiplied(one)
            assert not found[:, 7].any()
            assert np.array_equal(np.delete(found, 7, axis=1), np.delete(usual, 7, axis=1))


@pytest.mark.sample(4)
@pytest.mark.parametrize("family", FAMILIES)
def test_sums_do_not_depend_on_the_blocks(family: Any) -> None:
    data = data_of(3, family)
    for step in newton_steps(planned(data, RHO, family), data):
        cut = [totals(step, whole(data), rows) for rows in (N, 37)]
        assert all(np.array_equal(a, b) for a, b in zip(*cut, strict=True))


@pytest.mark.sample(4)
@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_all_steps_together_lose_no_more_than_is_charged(family: Any) -> None:
    rng, worst, pool = seeded(1), 0.0, records()
    for seed in range(2):
        data = data_of(seed, family)
        plan = planned(data, RHO, family)
        neighbour = {name: values.copy() for name, values in data.items()}
        chosen = rng.integers(len(pool["g"]))
        for name, values in neighbour.items():
            values[0] = pool[name][chosen]
        steps = steps_of(plan, data)
        assert sum(map(registry.rho, steps)) == plan.rho
        worst = max(worst, sum(step_loss(s, whole(data), whole(neighbour)) for s in steps))
    assert 0.01 * plan.rho < worst <= plan.rho
