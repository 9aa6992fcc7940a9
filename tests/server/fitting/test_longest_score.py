# SPDX-License-Identifier: Apache-2.0
"""The longest score that declared bounds allow, and what it says of a cut."""

from typing import Any

import numpy as np
import pytest

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.steps import Released
from reticent_server.fitting import row_tail
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.longest_score import longest_score
from reticent_server.fitting.public.standardise import Location
from reticent_server.fitting.row_tail import LengthGrid, RowCut, chosen_cut, most_beyond
from reticent_server.kinds.linear_regression.kind import KIND as LINEAR
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.mechanisms import running_counts
from support.fits.regressions import (
    boolean,
    drive,
    facts_of,
    numeric,
    plain_design,
    plain_term,
    profile_of,
    whole,
)
from support.kinds.named_tests import offer
from support.seeds import seeded

X = [numeric("age", 1, 4), boolean("female")]
Y = boolean("chol")
W = np.array([[1.2, 0.1, -0.2], [0.1, 0.9, 0.3], [-0.2, 0.3, 2.0]])


N, GRID = 20_000, LengthGrid(1.0)


def released(values: Any, noise: float) -> Released:
    """Running counts of lengths with noise of a standard deviation in their units."""
    part = GRID.part(RHO_UNITS, 1)
    totals = running_counts.factored(part, running_counts.encode(part, GRID.codes(values)))
    rng = seeded(3)
    found = totals / (1 << row_tail.FACTOR_BITS) + noise * rng.normal(size=len(totals))
    return Released(found, noise)


def coding(columns: list[Any]) -> Coding:
    where = tuple(Location(0.4, 0.7) for _ in columns)
    return Coding(plain_design(columns, Y), where, plain_term(Y), Location(0.2, 0.4))


def scores(theta: Any, columns: dict[str, Any], y: Any) -> Any:
    x = np.stack([np.ones(len(y)), *((columns[c.name] - 0.4) / 0.7 for c in X)])
    return np.abs((y - 0.2) / 0.4 - theta @ x) / 0.8 * np.linalg.norm(W @ x, axis=0)


def test_no_score_is_longer_and_that_of_a_corner_is_nearly_as_long() -> None:
    rng, n = seeded(0), 20_000
    for _ in range(5):
        theta = rng.normal(size=3)
        bound = longest_score(coding(X), theta, W, 0.8)
        inside = {"age": rng.uniform(1, 4, n), "female": rng.integers(0, 2, n)}
        corners = {"age": np.tile([1.0, 4], 4), "female": np.repeat([0.0, 1], 4)}
        y = np.tile(np.repeat([0.0, 1], 2), 2)
        longest = scores(theta, corners, y).max()
        assert scores(theta, inside, rng.integers(0, 2, n)).max() <= bound
        assert longest <= bound <= 1.6 * longest


def test_a_box_of_many_terms_has_no_end() -> None:
    many = [numeric(f"x{k}", 0, 1) for k in range(11)]
    assert longest_score(coding(many), np.zeros(12), np.eye(12), 1.0) == np.inf


def two_sorts(n: int = N) -> Any:
    """Lengths of a yes or no with weights: most short, a 25th up to 5."""
    rng = seeded(1)
    yes = rng.random(n) < 0.04
    return np.where(yes, 1.5 + 3.5 * rng.beta(1, 3, n), rng.uniform(0.1, 0.5, n))


def test_lengths_that_end_are_told_though_they_fall_slowly_before() -> None:
    values, noise = two_sorts(), 30.0
    found = chosen_cut(GRID, released(values, noise), N, 60.0)
    assert not found.told
    most = most_beyond(GRID, released(values, noise), found, 5.0)
    ended = found.ended(most)
    assert ended.told
    assert ended.excess == most
    assert most >= np.sum(np.maximum(values - found.length, 0))
    assert most < 60 * 3 * (5 - found.length)


def test_an_end_that_is_far_away_tells_nothing() -> None:
    values = two_sorts()
    found = chosen_cut(GRID, released(values, 30.0), N, 60.0)
    assert found.ended(most_beyond(GRID, released(values, 30.0), found, 5 * found.length)) == found
    assert most_beyond(GRID, released(values, 30.0), found, found.length / 2) == 0.0
    nothing = RowCut(4.0, 60.0, 0.0, 0.0)
    assert not nothing.ended(most_beyond(GRID, released(values, 30.0), nothing, 5.0)).told


def test_a_tail_that_is_told_is_cut_by_the_end_only_where_that_is_less() -> None:
    cut = RowCut(4.0, 60.0, 5.0, 30.0)
    assert cut.ended(10.0).excess == 10.0
    assert cut.ended(50.0) == cut


@pytest.mark.slow
def test_more_budget_gives_no_fewer_intervals_of_a_rare_yes() -> None:
    """A linear probability model with weights of a fifth of the largest, at ε = 4."""
    rng, n = seeded(2), 8000
    columns = [*X, Y, numeric("w", 0, 160)]
    age, female = rng.integers(1, 5, n) * 1.0, rng.integers(0, 2, n) * 1.0
    table = {
        "age": age,
        "female": female,
        "chol": (rng.random(n) < 0.03 * age) * 1.0,
        "w": np.minimum(rng.gamma(1.2, 28, n), 160),
    }
    facts = facts_of(n, columns, profile_of(table, columns))
    query = LinearRegression("chol ~ age + female", loss="squared", weights="w")
    for epsilon in (4.0, 16.0):
        result = drive(LINEAR.plan(facts, query, offer(epsilon)).run(), whole(table)).result
        assert all(result["estimable"])
