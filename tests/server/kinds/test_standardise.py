# SPDX-License-Identifier: Apache-2.0
"""Centres and scales from released quantiles, for columns, derived terms and products."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import lognorm, norm

from reticent_server.domain.design import Apply, ColumnValue, Term
from reticent_server.domain.facts import PROFILE_PROBABILITIES, ColumnProfile, Profile
from reticent_server.fitting.public.standardise import (
    Location,
    location,
    term_location,
)
from support.seeds import seeded

X = ColumnValue("x")
P = np.array(PROFILE_PROBABILITIES)


def profile(**quantiles: Any) -> Profile:
    return Profile(
        {
            name: ColumnProfile(quantiles=tuple(np.asarray(q, dtype=float)))
            for name, q in quantiles.items()
        }
        | {"g": ColumnProfile(counts=(700.0, 200.0, 100.0)), "d": ColumnProfile(counts=(90, 10))}
    )


def term(*factors: Any, lower: float = -100.0, upper: float = 100.0) -> Term:
    return Term("t", factors, lower, upper)


def test_a_column_has_its_released_median_and_quartiles() -> None:
    found = term_location(term(X), profile(x=norm.ppf(P, 5, 2)))
    assert found.centre == pytest.approx(5)
    assert found.scale == pytest.approx(2, rel=0.02)


def test_a_function_is_pushed_through_the_quantiles() -> None:
    prior = profile(x=lognorm.ppf(P, 0.5))
    found = term_location(term(Apply("log", X)), prior)
    assert found.centre == pytest.approx(0, abs=1e-2)
    assert found.scale == pytest.approx(0.5, rel=0.03)
    square = term_location(term(Apply("square", X)), profile(x=norm.ppf(P)))
    assert square.centre == pytest.approx(norm.ppf(0.75) ** 2, rel=0.1)


def test_a_product_combines_independent_factors() -> None:
    rng = seeded(0)
    a, b = rng.normal(3, 1, 10**5), rng.normal(-1, 2, 10**5)
    found = term_location(
        term(X, ColumnValue("z")), profile(x=norm.ppf(P, 3, 1), z=norm.ppf(P, -1, 2))
    )
    first, middle, third = np.quantile(a * b, [0.25, 0.5, 0.75])
    assert found.centre == pytest.approx(middle, abs=0.3)
    assert found.scale == pytest.approx((third - first) / 1.349, rel=0.1)


def test_fall_backs_of_a_column_that_is_mostly_one_value() -> None:
    assert location([0, 0, 0, 0, 3.29], 0, 12).scale == pytest.approx(1, rel=1e-3)
    assert location([-50, -0.1, 0, 0.1, 50], -99, 99).scale == pytest.approx(100 / 3.29, rel=1e-3)
    assert location([7, 7, 7, 7, 7], 0, 12**0.5).scale == pytest.approx(1)
    assert location([7, 7, 7, 7, 7], 7, 7) == Location(7, 1.0)


def test_a_column_that_is_not_in_the_profile_has_no_location() -> None:
    assert term_location(term(ColumnValue("new")), profile(x=P)) is None
    assert term_location(term(X, ColumnValue("new")), profile(x=P)) is None
    assert term_location(term(Apply("log", X)), profile(x=-P)) is None
