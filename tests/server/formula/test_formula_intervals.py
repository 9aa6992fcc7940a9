# SPDX-License-Identifier: Apache-2.0
"""Bounds of terms: they hold for every record, and undefined terms are refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.domain.steps import Block
from reticent_server.errors import InvalidFormula
from reticent_server.formula import Limits, parse_formula
from reticent_server.numerics.evaluate import evaluate_term


def bounds(term: str, lower: float, upper: float) -> tuple[float, float]:
    columns = (Column("y", ColumnKind.NUMERIC, 0, 1), Column("x", ColumnKind.NUMERIC, lower, upper))
    (coded,) = parse_formula(f"y ~ {term}", Schema(columns)).terms
    return coded.lower, coded.upper


@pytest.mark.parametrize(
    ("term", "declared", "expected"),
    [
        ("x", (-2, 3), (-2, 3)),
        ("I(x**2)", (-2, 3), (0, 9)),
        ("I(x**2)", (-3, -2), (4, 9)),
        ("I(x**3)", (-2, 3), (-8, 27)),
        ("I(x**4)", (-2, 1), (0, 16)),
        ("I(x**-1)", (2, 4), (0.25, 0.5)),
        ("I(x**-2)", (-4, -2), (1 / 16, 0.25)),
        ("I(x**0)", (-2, 3), (1, 1)),
        ("I(x**.5)", (0, 9), (0, 3)),
        ("sqrt(x)", (4, 9), (2, 3)),
        ("log10(x)", (0.1, 100), (-1, 2)),
        ("log1p(x)", (0, 0), (0, 0)),
        ("exp(x)", (0, 1), (1, np.e)),
        ("x:I(x**2)", (-2, 3), (-18, 27)),
        ("poly(x, 1)", (-2, 3), (-1, 1)),
        ("poly(I(x**2), 1):x", (-2, 3), (-3, 3)),
    ],
)
def test_known_bounds(
    term: str, declared: tuple[float, float], expected: tuple[float, float]
) -> None:
    assert bounds(term, *declared) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("term", "declared", "sentence"),
    [
        ("log(x)", (0, 10), r"log\(x\) is not defined .*: x lies in \[0, 10\], and log needs"),
        ("log10(x)", (-1, 10), r"log10\(x\) is not defined .*x lies in \[-1, 10\]"),
        ("log1p(x)", (-1, 10), r"log1p\(x\) .* log1p needs values above -1"),
        ("sqrt(x)", (-0.1, 10), r"sqrt\(x\) is not defined"),
        ("exp(x)", (0, 1000), r"exp\(x\) .*smaller values"),
        ("exp(exp(x))", (0, 10), r"exp\(exp\(x\)\) .*: exp\(x\) lies in \[1, 22026.5\]"),
        ("I(x**-1)", (-1, 1), r"I\(x\*\*-1\) is not defined .*whole positive exponent"),
        ("I(x**-2)", (0, 1), r"I\(x\*\*-2\) is not defined"),
        ("I(x**.5)", (-1, 1), r"I\(x\*\*0.5\) is not defined"),
        ("I(x**2)", (0, 1e200), r"I\(x\*\*2\) .*smaller values"),
        ("I(x**9)", (0, 1e100), r"I\(x\*\*9\) .*smaller values"),
        ("I(x**1.5):x", (0, 1e150), r"I\(x\*\*1.5\):x is too large for a double"),
    ],
)
def test_undefined_terms_are_refused(
    term: str, declared: tuple[float, float], sentence: str
) -> None:
    with pytest.raises(InvalidFormula, match=sentence):
        bounds(term, *declared)


def test_an_undefined_response_is_refused(schema: Schema) -> None:
    with pytest.raises(InvalidFormula, match=r"log\(zero\) is not defined"):
        parse_formula("log(zero) ~ a", schema)


FACTORS = st.sampled_from(
    [
        *("x", "z", "d", "g", "I(x**2)", "I(x**3)", "sqrt(z)", "log(z)", "I(z**-1.5)", "log1p(d)"),
        *("poly(z, 4)", "poly(log(z), 2)", "bs(z, knots=[])", "bs(d, knots=[.25, .5], degree=2)"),
    ]
)
FINITE = st.floats(-1e3, 1e3)


@pytest.mark.slow
@given(
    terms=st.lists(st.lists(FACTORS, min_size=1, max_size=4), min_size=1, max_size=3),
    ends=st.tuples(FINITE, FINITE),
    scale=st.floats(1e-3, 1e3),
    shares=st.lists(st.floats(0, 1), min_size=6, max_size=6),
)
def test_every_record_lies_within_the_bounds(
    terms: list[list[str]], ends: tuple[float, float], scale: float, shares: list[float]
) -> None:
    lower, upper = min(ends), max(ends)
    table = Schema(
        (
            Column("y", ColumnKind.NUMERIC, 0, 1),
            Column("x", ColumnKind.NUMERIC, lower, upper),
            Column("z", ColumnKind.NUMERIC, scale, 2 * scale),
            Column("d", ColumnKind.BOOLEAN, 0, 1),
            Column("g", ColumnKind.CATEGORICAL, 0, 2, ("u", "v", "w")),
        )
    )
    share = np.array([0.0, 1.0, *shares])
    x = np.clip(lower + share * (upper - lower), lower, upper)
    block = Block(
        0,
        share.size,
        {
            "x": x,
            "z": scale * (1 + share[::-1]),
            "d": (share > 0.5).astype(float),
            "g": np.minimum(np.floor(3 * share), 2.0),
        },
        {},
    )
    formula = "y ~ " + "+".join(map(":".join, terms))
    for term in parse_formula(formula, table, limits=Limits(max_columns=5_000)).terms:
        values = evaluate_term(term, block)
        slack = 1e-12 * max(abs(term.lower), abs(term.upper))
        assert values.min() >= term.lower - slack
        assert values.max() <= term.upper + slack
        assert not term.dummy or set(values) <= {0.0, 1.0}
