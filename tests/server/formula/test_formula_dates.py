# SPDX-License-Identifier: Apache-2.0
"""Parts of dates in formulas and conditions, and columns on public centres and scales."""

from datetime import date
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri

from reticent_server.domain.dates import date_days
from reticent_server.domain.design import Compare
from reticent_server.domain.facts import ColumnProfile, Profile
from reticent_server.domain.schema import Column, Recode, Schema, Unit
from reticent_server.domain.schema import ColumnKind as Kind
from reticent_server.domain.steps import Block
from reticent_server.errors import InvalidFormula
from reticent_server.formula import parse_formula, parse_predicate
from reticent_server.formula.features import parse_view
from reticent_server.numerics.evaluate import evaluate_term

LOWER, UPPER = date_days("2013-11-20"), date_days("2015-02-10")
SCHEMA = Schema(
    (
        Column("y", Kind.NUMERIC, 0, 100),
        Column("x", Kind.NUMERIC, 1, 5001),
        Column("sold", Kind.INTEGER, LOWER, UPPER, missing=("",), recode=Recode(date="%Y-%m-%d")),
    ),
    Unit("person", 4),
)
QUANTILES = tuple(100 + 20 * ndtri(ColumnProfile().probabilities))
PROFILE = Profile({"x": ColumnProfile(quantiles=QUANTILES)})
DAYS = np.arange(LOWER, UPPER + 1)
DATES = [date.fromordinal(int(d) + date(1970, 1, 1).toordinal()) for d in DAYS]


def columns(terms: str) -> dict[str, Any]:
    """The columns of a design on every day of the bounds, each within its own bounds."""
    design = parse_formula(f"y ~ {terms}", SCHEMA)
    block = Block(0, len(DAYS), {"sold": DAYS}, {})
    found = {term.name: evaluate_term(term, block) for term in design.terms}
    for term in design.terms:
        assert term.lower <= found[term.name].min()
        assert found[term.name].max() <= term.upper
    return found


def test_parts_of_dates() -> None:
    found = columns('year(sold) + month(sold) + days_since(sold, "2014-01-01") + sold')
    assert found["year(sold)"].tolist() == [d.year for d in DATES]
    assert found["month(sold)"].tolist() == [d.month for d in DATES]
    since = found['days_since(sold, "2014-01-01")']
    assert since.tolist() == [(d - date(2014, 1, 1)).days for d in DATES]
    assert found["sold"].tolist() == DAYS.tolist()


def test_months_and_years_are_factors() -> None:
    found = columns("C(month(sold)) + C(year(sold), Sum)")
    assert len(found) == 13
    for k in range(2, 13):
        assert found[f"C(month(sold))[{k}]"].tolist() == [float(d.month == k) for d in DATES]
    middle = [float(d.year == 2014) - float(d.year == 2015) for d in DATES]
    assert found["C(year(sold), Sum)[S.2014]"].tolist() == middle


def test_bounds_in_one_year_bound_the_months() -> None:
    ends = date_days("2014-03-31"), date_days("2014-05-01")
    within = Column("sold", Kind.INTEGER, *ends, recode=Recode(date="%Y-%m-%d"))
    design = parse_formula("y ~ month(sold)", Schema((SCHEMA.columns[0], within)))
    assert (design.terms[0].lower, design.terms[0].upper) == (3.0, 5.0)


@pytest.mark.parametrize(
    ("text", "op", "day"),
    [
        ('sold >= "2014-05-02"', ">=", 16192.0),
        ('"2014-05-02" > sold', "<", 16192.0),
        ('sold == "2014-05-02"', "==", 16192.0),
    ],
)
def test_conditions_compare_with_a_date(text: str, op: Any, day: float) -> None:
    assert parse_predicate(text, SCHEMA) == Compare("sold", op, day)
    assert parse_predicate('sold in ("2014-05-02")', SCHEMA).arguments == (  # type: ignore[union-attr]
        Compare("sold", "==", 16192.0),
    )


def test_features_of_persons_are_ordered_by_a_date() -> None:
    texts = {"last_x": "last(x, by=sold)", "n": 'count(where=sold > "2014-01-01")'}
    view = parse_view(texts, SCHEMA)
    assert view.schema.column("last_x") is not None


def test_centres_and_scales_are_the_profile_s_or_the_bounds() -> None:
    name, scaled = parse_formula("y ~ center(x) + scale(x)", SCHEMA, profile=PROFILE).names[1:]
    assert (name, scaled) == ("center(x, at=100)", "scale(x, at=100, by=20)")
    name, scaled = parse_formula("y ~ center(x) + scale(x)", SCHEMA).names[1:]
    assert (name, scaled) == ("center(x, at=2500)", "scale(x, at=2500, by=1400)")  # 5000/√12
    assert parse_formula(f"y ~ {scaled}:{name}", SCHEMA, profile=PROFILE).names[1] == (
        f"{scaled}:{name}"
    )


def test_a_scaled_column_is_what_its_name_says() -> None:
    design = parse_formula("y ~ I(scale(log(x), at=-0.5, by=2)**2)", SCHEMA)
    x = np.array([1.0, 40.0, 5001.0])
    (term,) = design.terms
    values = evaluate_term(term, Block(0, 3, {"x": x}, {}))
    assert values == pytest.approx(((np.log(x) + 0.5) / 2) ** 2)
    assert (term.lower, term.upper) == pytest.approx((values.min(), values.max()))


@pytest.mark.parametrize(
    ("terms", "sentence"),
    [
        ("year(x)", "position 10 of the formula: x is not a date column"),
        ("C(month(x))", "x is not a date column"),
        ("days_since(sold)", "position 20 of the formula: write ','"),
        ("days_since(sold, 5)", 'write a date in quotes, such as "2020-01-31"'),
        ('days_since(sold, "2014-02-30")', "position 22 of the formula: write a date that"),
        ("scale(x, by=0)", "position 12 of the formula: give a scale above 0"),
        ("center(x, by=1)", r"write '\)'"),
        ("scale(log(x, at=1))", "only one column, functions, powers and numbers"),
        ("center(x, at=a)", "write a number after at="),
        ("C(scale(x))", "unknown column"),
    ],
)
def test_refusals_say_what_to_change(terms: str, sentence: str) -> None:
    with pytest.raises(InvalidFormula, match=sentence):
        parse_formula(f"y ~ {terms}", SCHEMA)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('sold > "2014-02-30"', "position 8 of the where condition: write a date that"),
        ('"yesterday" < sold', "position 1 of the where condition: write a date that"),
        ('x > "2014-01-01"', "compare x, which is not categorical, with a number"),
        ("sold >= 2016", '9 of the where condition: .* such as sold >= "2016-01-01"'),
        ("sold < 20160102", 'such as sold < "2016-01-02"'),
        ("201602 <= sold", 'position 1 of the where condition: .* such as "2016-02-01" <= sold'),
        ("sold == 16192", 'such as sold == "2020-01-31"'),
        ("sold == -3", 'such as sold == "2020-01-31"'),
        ("sold in (2016, 2017)", r'such as sold in \("2016-01-01"\)'),
    ],
)
def test_a_date_that_is_none_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(InvalidFormula, match=sentence):
        parse_predicate(text, SCHEMA)
