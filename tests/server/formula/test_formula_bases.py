# SPDX-License-Identifier: Apache-2.0
"""poly and bs in a formula: their columns, their values on a block, and what is refused."""

import numpy as np
import pytest
from scipy.interpolate import BSpline

from reticent_server.domain.facts import PROFILE_PROBABILITIES, ColumnProfile, Profile
from reticent_server.domain.schema import Schema
from reticent_server.domain.steps import Block
from reticent_server.errors import InvalidFormula
from reticent_server.fitting.public.standardise import term_location
from reticent_server.formula import parse_formula
from reticent_server.kinds.hypothesis_test.terms import term_hypotheses
from reticent_server.numerics.evaluate import evaluate_term


def names(formula: str, schema: Schema) -> list[str]:
    return [t.name for t in parse_formula(formula, schema).terms]


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ("poly(x1,2)", ["poly(x1, 2)[1]", "poly(x1, 2)[2]"]),
        ("poly(`sq ft`, 1) + poly(x1, 1.)", ["poly(`sq ft`, 1)[1]", "poly(x1, 1)[1]"]),
        ("bs(a, knots=[0], degree=1)", [f"bs(a, knots=[0], degree=1)[{k}]" for k in (1, 2)]),
        ("bs(a, knots=[])", [f"bs(a, knots=[], degree=3)[{k}]" for k in (1, 2, 3)]),
        (
            "bs(a, knots=[-.5,0,+.5])",
            [f"bs(a, knots=[-0.5, 0, 0.5], degree=3)[{k + 1}]" for k in range(6)],
        ),
        ("bs(a, knots=c(0), degree=1)", [f"bs(a, knots=[0], degree=1)[{k}]" for k in (1, 2)]),
        ("bs(a, knots=(0), degree=1)", [f"bs(a, knots=[0], degree=1)[{k}]" for k in (1, 2)]),
        ("splines::bs(zero, df=4)", [f"bs(zero, knots=[5], degree=3)[{k}]" for k in (1, 2, 3, 4)]),
        (
            "bs(zero, df=3, degree=1)",
            [f"bs(zero, knots=[3.3, 6.7], degree=1)[{k}]" for k in (1, 2, 3)],
        ),
        ("poly(a, 1):b", ["poly(a, 1)[1]:b"]),
        ("h*poly(a, 1)", ["h[1]", "poly(a, 1)[1]", "h[1]:poly(a, 1)[1]"]),
        ("poly(a, 1) + poly( a , 1 ) - poly(x1, 2)", ["poly(a, 1)[1]"]),
        ("poly(log(x2), 1)", ["poly(log(x2), 1)[1]"]),
    ],
)
def test_columns(schema: Schema, terms: str, expected: list[str]) -> None:
    assert names(f"y ~ {terms}", schema) == expected
    assert names(f"y ~ 0 + {terms}", schema)[-1] == expected[-1]


def test_values_are_of_the_basis_on_the_declared_bounds(schema: Schema) -> None:
    x = np.linspace(-1, 5, 200)
    block = Block(0, len(x), {"x1": x, "y": x}, {})
    design = parse_formula("y ~ poly(x1, 3) + bs(x1, knots=[0, 2.5], degree=2)", schema)
    found = np.array([evaluate_term(t, block) for t in design.terms])
    t = (x - 2) / 3
    np.testing.assert_allclose(
        found[:3], [t, (3 * t**2 - 1) / 2, (5 * t**3 - 3 * t) / 2], atol=1e-12
    )
    knots = np.array([-1, -1, -1, 0, 2.5, 5, 5, 5.0])
    np.testing.assert_allclose(
        found[3:], BSpline.design_matrix(x, knots, 2).toarray().T[1:], atol=1e-12
    )
    assert design.columns == ("y", "x1")
    assert design.missing_columns == ("x1",)


def test_they_span_what_powers_span(schema: Schema) -> None:
    x = np.linspace(-1, 5, 50)
    block = Block(0, len(x), {"x1": x}, {})
    powers = np.vander(x, 4)
    for terms in ("poly(x1, 3)", "bs(x1, knots=[], degree=3)"):
        design = parse_formula(f"y ~ {terms}", schema)
        X = np.column_stack([np.ones(50), *(evaluate_term(t, block) for t in design.terms)])
        fitted = X @ np.linalg.lstsq(X, powers, rcond=None)[0]
        np.testing.assert_allclose(fitted, powers, atol=1e-8)


@pytest.mark.parametrize(
    ("term", "sentence"),
    [
        ("poly(a)", "write ','"),
        ("poly(a, 0)", "whole order from 1 to 10"),
        ("poly(a, 11)", "whole order from 1 to 10"),
        ("poly(a, 1.5)", "whole order"),
        ("poly(a, -1)", "whole order"),
        ("poly(a, nan)", "order as a whole number"),
        ("poly(a, 1e999)", "a double can hold"),
        ("poly(a, 2, 3)", r"write '\)'"),
        ("poly(g, 2)", "categorical"),
        ("poly(flat, 2)", "bounds differ"),
        ("poly(nobody, 2)", "unknown column"),
        ("poly(poly(a, 2), 2)", "as a term of its own"),
        ("log(bs(a, knots=[]))", "as a term of its own"),
        ("poly(log(a), 2)", "not defined on the declared bounds"),
        ("bs(a)", "write ','"),
        ("bs(a, 3)", "write knots="),
        ("bs(a, degree=3)", "write knots="),
        ("bs(a, knots=0)", r"write '\['"),
        ("bs(a, df=2)", "a df from the degree to 20 more"),
        ("bs(a, df=26)", "whole df from 1 to 25"),
        ("bs(a, knots=c(0]", "write ','"),
        ("bs(a, knots=[0)", "write ','"),
        ("bs(a, knots=[0 .5])", "write ','"),
        ("bs(a, knots=[0,])", "knots as numbers"),
        ("bs(a, knots=[nan])", "knots as numbers"),
        ("bs(a, knots=[x1])", "knots as numbers"),
        ("bs(a, knots=[1e999])", "a double can hold"),
        ("bs(a, knots=[.5, 0])", "increasing order"),
        ("bs(a, knots=[0, 0])", "increasing order"),
        ("bs(a, knots=[-1])", "increasing order, each once, between the declared bounds -1 and 1"),
        ("bs(a, knots=[1])", "increasing order"),
        ("bs(a, knots=[7])", "increasing order"),
        (f"bs(x1, knots=[{','.join(str(k / 8) for k in range(21))}])", "at most 20 knots"),
        ("bs(a, knots=[0], degree=0)", "whole degree from 1 to 5"),
        ("bs(a, knots=[0], degree=6)", "whole degree from 1 to 5"),
        ("bs(a, knots=[0], order=2)", "write degree="),
        ("bs(flat, knots=[])", "bounds differ"),
        ("bs(y, knots=[])", "response"),
        ("poly(a, 10):poly(x1, 10):poly(x2, 3)", "256 design columns"),
        ("bs(a, knots=[], degree=5)**2", "write a power"),
    ],
)
def test_what_is_refused(schema: Schema, term: str, sentence: str) -> None:
    with pytest.raises(InvalidFormula, match=sentence):
        parse_formula(f"y ~ {term}", schema)


@pytest.mark.parametrize("response", ["poly(a, 2)", "bs(a, knots=[])"])
def test_a_basis_is_no_response(schema: Schema, response: str) -> None:
    with pytest.raises(InvalidFormula, match="as a term of its own"):
        parse_formula(f"{response} ~ x1", schema)


def test_a_basis_is_one_term_of_a_table(schema: Schema) -> None:
    design = parse_formula("y ~ poly(a, 2) + bs(a, knots=[0]) + poly(x1, 2)", schema)
    tested = term_hypotheses(design.terms, intercept=True)
    assert [(name, h.df) for name, h in tested] == [
        ("poly(a, 2)", 2),
        ("bs(a, knots=[0], degree=3)", 4),
        ("poly(x1, 2)", 2),
    ]


def test_centre_and_scale_come_from_the_profile(schema: Schema) -> None:
    quantiles = tuple(np.interp(PROFILE_PROBABILITIES, [0, 1], [0.0, 4.0]).tolist())
    profile = Profile({"x1": ColumnProfile(quantiles=quantiles)})
    (term,) = parse_formula("y ~ poly(x1, 1)", schema).terms
    found = term_location(term, profile)
    assert found is not None
    assert found.centre == pytest.approx(0.0, abs=0.02)
    assert found.scale == pytest.approx((2 / 3) / 1.349, rel=0.05)


def test_knots_of_df_are_quantiles_of_the_released_profile(schema: Schema) -> None:
    """As R's bs has them of the data: here of public quantiles, rounded to what the name says."""
    quantiles = tuple(10 * p**2 for p in PROFILE_PROBABILITIES)
    profile = Profile({"zero": ColumnProfile(quantiles=quantiles)})
    design = parse_formula("y ~ bs(zero, df=5)", schema, profile=profile)
    knots = [float(k) for k in design.terms[0].name.split("[")[1].split("]")[0].split(", ")]
    assert knots == pytest.approx([10 / 9, 40 / 9], abs=0.15)
    tied = Profile({"zero": ColumnProfile(quantiles=(0.0,) * len(quantiles))})
    with pytest.raises(InvalidFormula, match="the released quantiles tie"):
        parse_formula("y ~ bs(zero, df=5)", schema, profile=tied)
