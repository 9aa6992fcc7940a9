# SPDX-License-Identifier: Apache-2.0
"""Selections at the price of Gaussian noise, attacked: exact laws of quantile trees on all small
neighbours, alone and beside noise, against the curve that is promised, at every ε.
"""

from collections.abc import Iterator
from itertools import product
from math import ceil, pi, sqrt
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

from reticent_server.accounting import gaussian
from reticent_server.accounting.gaussian_account import OTHER
from reticent_server.domain.cost import EPSILON_UNITS, RHO_UNITS
from reticent_server.domain.grid import Grid
from reticent_server.domain.steps import CountSum, QuantileTree, SumStep, VectorSum
from reticent_server.mechanisms import gaussian_cost, noisy_sum, quantile_tree
from support.attacks.selection_laws import probabilities, tree_law

FOUR = Grid(1.0, 4.0, integers=True)
EPSILONS = np.linspace(-3.0, 6.0, 181)
SLACK = gaussian.SLACK_UNITS / EPSILON_UNITS


def cost_of(*parts: Any) -> float:
    """ρ_G of a step of these parts, not in units."""
    return gaussian_cost.cost(SumStep("s", parts, lambda block: ())).rho / RHO_UNITS


def curve(mu: float, epsilon: Any) -> Any:
    """H(μ, ε): all that N(μ, 1) tells against N(0, 1)."""
    return ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)


def told(p: Any, q: Any) -> Any:
    """δ of a selection at every ε; p, q: its laws on two neighbours."""
    return np.maximum(0.0, p - np.exp(EPSILONS)[:, None] * q).sum(axis=1)


def told_beside(p: Any, q: Any, mu: float) -> Any:
    """δ at every ε of a selection and continuous noise of μ."""
    return (p * curve(mu, EPSILONS[:, None] - np.log(p / q))).sum(axis=1)


def told_beside_a_count(p: Any, q: Any, variance: float) -> Any:
    """δ at every ε of a selection and one count that differs by 1, with discrete noise."""
    z = np.arange(-ceil(9 * sqrt(variance)) - 1.0, ceil(9 * sqrt(variance)) + 2)
    noise = np.exp(-(z**2) / (2 * variance))
    noise /= noise.sum()
    one = np.exp(-((z - 1) ** 2) / (2 * variance)) / np.exp(-(z**2) / (2 * variance)).sum()
    joint = np.outer(p, one).ravel(), np.outer(q, noise).ravel()
    return told(*joint)


def pairs(part: QuantileTree, unit_rows: int) -> Iterator[tuple[Any, Any]]:
    """The exact laws on every two neighbours of three or four records in four cells."""
    tables = [c for c in product(range(5), repeat=4) if sum(c) in (3, 4)]
    laws = {counts: tree_law(part, counts) for counts in tables}
    for a, b in product(tables, repeat=2):
        moved = sum(abs(x - y) for x, y in zip(a, b, strict=True))
        if a != b and moved <= 2 * unit_rows and abs(sum(a) - sum(b)) <= unit_rows:
            yield tuple(np.array([laws[t].get(k, 0.0) for k in laws[a]]) for t in (a, b))


@pytest.mark.slow
@pytest.mark.parametrize("unit_rows", [1, pytest.param(2, marks=pytest.mark.audit)])
@pytest.mark.parametrize(
    ("asked", "rho"),
    [((0.5,), 0.02), ((0.25, 0.5, 0.75), 0.02), ((0.5,), 2.0), ((0.25, 0.5, 0.75), 2.0)],
)
def test_no_table_tells_more_than_the_gaussian_of_its_price(
    asked: tuple[float, ...], rho: float, unit_rows: int
) -> None:
    """At every ε, the negative ones too; alone, and beside a sum and a count."""
    part = QuantileTree(FOUR, asked, round(rho * RHO_UNITS), unit_rows)
    total, count = VectorSum(1, 1.0, part.rho), CountSum(1, round(0.05 * RHO_UNITS))
    alone, beside, counted = (
        curve(sqrt(2 * cost_of(part, *more)), EPSILONS - (SLACK if more else 0.0))
        for more in ((), (total,), (count,))
    )
    mu, variance = sqrt(2 * rho), noisy_sum.scale(count) ** 2
    for k, (p, q) in enumerate(pairs(part, unit_rows)):
        assert (told(p, q) <= alone + 1e-12).all()
        if k % 7 == 0:
            assert (told_beside(p, q, mu) <= beside + 1e-12).all()
            assert (told_beside_a_count(p, q, variance) <= counted + 1e-12).all()


def test_its_price_is_attained_and_zcdps_would_be_too_little() -> None:
    """Empty cells, half of which a record that crosses them takes a rank from and half of which it
    gives one: two outcomes as in the proof, at a small ρ the worst that there is.
    """
    part = QuantileTree(FOUR, (0.5,), RHO_UNITS // 10_000)
    ladder, laws = quantile_tree.ladder(part), []
    for counts in ((1, *[0] * 50, 1, *[0] * 50, 0), (0, *[0] * 50, 1, *[0] * 50, 1)):
        levels = quantile_tree.levels_of(
            np.concatenate([[0], np.cumsum(counts)]), quantile_tree.levels((0.5,))[0][0].rank(
                quantile_tree.exact_probabilities((0.5,))
            ), ladder.steps
        )  # fmt: skip
        laws.append(probabilities(levels, ladder))
    half = float(np.abs(laws[0] - laws[1]).sum() / 2)  # δ at ε = 0
    allowed = float(curve(sqrt(2 * cost_of(part)), 0.0))
    assert 0.98 * allowed < half < allowed
    assert half > 1.2 * float(curve(sqrt(2 * part.rho / RHO_UNITS), 0.0))


def test_a_selection_is_charged_a_little_more_than_half_of_pi() -> None:
    part = QuantileTree(FOUR, (0.5,), 7 * 10**8)
    assert cost_of(part) * RHO_UNITS == 11 * 10**8
    assert pi / 2 < OTHER < 1.001 * pi / 2
    assert gaussian_cost.surcharge([QuantileTree(FOUR, (0.5,), 1)]) == 1  # rounded up
