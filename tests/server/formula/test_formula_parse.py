# SPDX-License-Identifier: Apache-2.0
"""What each piece of the model language means, and the sentence of each refusal."""

import numpy as np
import pytest

from reticent.results.design import Design as FittedDesign
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.design import Apply, ColumnValue, Design, Indicator, Term
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Column, Schema
from reticent_server.domain.schema import ColumnKind as Kind
from reticent_server.domain.steps import Block
from reticent_server.errors import InvalidFormula, InvalidQuery, ReticentError
from reticent_server.formula import Limits, mask_design, parse_formula
from reticent_server.kinds.study.kind import KIND as STUDY
from reticent_server.kinds.study.kind import Study
from reticent_server.numerics.evaluate import evaluate_term


def names(text: str, schema: Schema) -> list[str]:
    return list(parse_formula(text, schema).names)


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ("x1 + a", ["Intercept", "x1", "a"]),
        ("x1 + x1 + I(x1)", ["Intercept", "x1"]),
        ("0 + a", ["a"]),
        ("a - 1", ["a"]),
        ("-1 + a", ["a"]),
        ("a - 0", ["Intercept", "a"]),
        ("1", ["Intercept"]),
        ("C(g)", ["Intercept", "C(g)[v]", "C(g)[w]"]),
        ("g + C(g)", ["Intercept", "g[v]", "g[w]"]),
        ("b + i", ["Intercept", "b", "i"]),
        ("C(b)", ["Intercept", "C(b)[1]"]),
        ("C(grade)", ["Intercept", *(f"C(grade)[{k}]" for k in range(2, 7))]),
        ('C(g, ref="w")', ["Intercept", "C(g)[u]", "C(g)[v]"]),
        ('0 + C(g, ref="w")', ["C(g)[w]", "C(g)[u]", "C(g)[v]"]),
        ("C(grade, ref=6)", ["Intercept", *(f"C(grade)[{k}]" for k in range(1, 6))]),
        ("C(b, ref=1)", ["Intercept", "C(b)[0]"]),
        (
            'C(g, ref="v"):x1 + g',
            ["Intercept", "g[v]", "g[w]", "C(g)[v]:x1", "C(g)[u]:x1", "C(g)[w]:x1"],
        ),
        ("C(k, ref='Zürich')", ["Intercept", 'C(k)[say "no"]']),
        ("0 + h + b", ["h[0]", "h[1]", "b"]),
        ("x1*a", ["Intercept", "x1", "a", "x1:a"]),
        ("x1:a + a:x1 + x1", ["Intercept", "x1", "x1:a"]),
        ("(x1 + a):h", ["Intercept", "x1:h[0]", "x1:h[1]", "a:h[0]", "a:h[1]"]),
        ("x1*a*x2 - x1:a:x2 - a", ["Intercept", "x1", "x2", "x1:a", "x1:x2", "a:x2"]),
        ("a:a", ["Intercept", "a"]),
        ("one", ["Intercept"]),
        ("`sq ft` + `x1`", ["Intercept", "`sq ft`", "x1"]),
        ("log + log(log)", ["Intercept", "log", "log(log)"]),
        ("I(x1**2) + I((a ** 2) ** 1.5)", ["Intercept", "I(x1**2)", "I((a**2)**1.5)"]),
        ("sqrt(x2**3) + I(x2**-1)", ["Intercept", "sqrt(x2**3)", "I(x2**-1)"]),
        # As people type them, in patsy's and in R's spelling.
        ("a + -1", ["a"]),
        ('C(g, Treatment("v"))', ["Intercept", "C(g)[u]", "C(g)[w]"]),
        ("C(g, Treatment(reference='v'))", ["Intercept", "C(g)[u]", "C(g)[w]"]),
        ('C(g, reference="v")', ["Intercept", "C(g)[u]", "C(g)[w]"]),
        ("as.factor(g) + factor(b)", ["Intercept", "C(g)[v]", "C(g)[w]", "C(b)[1]"]),
        ("(a + x1)**2", ["Intercept", "a", "x1", "a:x1"]),
        ("(a + b + x1)^2", ["Intercept", "a", "b", "x1", "a:b", "a:x1", "b:x1"]),
        ("a/x1", ["Intercept", "a", "a:x1"]),
        ("(a + b)/x1", ["Intercept", "a", "b", "a:b:x1"]),
        ("h/x1", ["Intercept", "h[1]", "h[0]:x1", "h[1]:x1"]),
        ("a + x1 %in% a", ["Intercept", "a", "x1:a"]),
        ("np.log(x2) + base::exp(a)", ["Intercept", "log(x2)", "exp(a)"]),
        ("log(zero + 1)", ["Intercept", "log(center(zero, at=-1))"]),
        ("log(1 + zero)", ["Intercept", "log(center(zero, at=-1))"]),
        ("I(a*2) + I(4*x1)", ["Intercept", "scale(a, at=0, by=0.5)", "scale(x1, at=0, by=0.25)"]),
        ("I(x1/1000 - 3)", ["Intercept", "center(scale(x1, at=0, by=1000), at=3)"]),
        ("I(x1^2) + I(x1**2 + 1)", ["Intercept", "I(x1**2)", "center(x1**2, at=-1)"]),
    ],
)
def test_terms_and_their_names(terms: str, expected: list[str], schema: Schema) -> None:
    assert names(f"y ~ {terms}", schema) == expected


def test_arithmetic_with_numbers_is_exact_and_is_read_again(schema: Schema) -> None:
    x = np.linspace(0, 10, 50)
    block = Block(0, len(x), {"zero": x, "y": x}, {})
    formula = "y ~ log(zero + 1) + I(zero/3) + I(2*zero + 1) + I(zero**2/10 - 3)"
    design = parse_formula(formula, schema)
    expected = [np.log(x + 1), x / 3, 2 * x + 1, x**2 / 10 - 3]
    for term, values in zip(design.terms, expected, strict=True):
        np.testing.assert_allclose(evaluate_term(term, block), values, rtol=1e-15, atol=1e-15)
        assert term.lower <= values.min() + 1e-12
        assert values.max() <= term.upper + 1e-12
        assert names(f"y ~ {term.name}", schema) == ["Intercept", term.name]
    told = FittedDesign([term.name for term in design.terms])
    np.testing.assert_allclose(told.rows({"zero": x}), np.transpose(expected), atol=1e-14)


def test_a_design_is_data(schema: Schema) -> None:
    design = parse_formula("log1p(y) ~ I(x2**2):h + b", schema, 'grade > 2 and g != "u"')
    square = Apply("square", ColumnValue("x2"))
    assert design.response == Term(
        "log1p(y)", (Apply("log1p", ColumnValue("y")),), 0.0, pytest.approx(4.61512051684126)
    )
    assert design.terms == (
        Term("b", (ColumnValue("b"),), 0.0, 1.0, dummy=True),
        Term("I(x2**2):h[0]", (square, Indicator("h", 0.0)), 0.0, 25.0),
        Term("I(x2**2):h[1]", (square, Indicator("h", 1.0)), 0.0, 25.0),
    )
    assert design.columns == ("y", "b", "x2", "h", "grade", "g")
    assert design.missing_columns == ("g",)
    assert design.masked


def test_interactions_of_dummies_are_dummies(schema: Schema) -> None:
    design = parse_formula("i ~ b:g + b:x1 + C(grade)", schema)
    assert design.response is not None
    assert design.response.dummy
    assert [t.name for t in design.terms if not t.dummy] == ["b:x1"]


def test_a_response_with_a_constant_term(schema: Schema) -> None:
    (term,) = parse_formula("y ~ flat", schema).terms
    assert (term.lower, term.upper) == (3.0, 3.0)


def test_factors_without_a_column_are_still_read(schema: Schema) -> None:
    assert parse_formula("y ~ one", schema).columns == ("y", "one")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "y ~ secret",
            (
                "At position 5 of the formula: unknown column; the data set's description lists "
                "its columns"
            ),
        ),
        ("y ~ x1.__class__", "At position 5 of the formula: unknown column"),
        ("y", "At position 2 of the formula: write '~' after the response"),
        ("~ a", "At position 1 of the formula: write the response"),
        ("y ~", "At position 4 of the formula: write a column"),
        ("y ~ a ~ b", "use \\+ - \\* / : and brackets only"),
        ("y + a ~ b", "use a single response"),
        ("y ~ y", "The response's column y is also among the terms"),
        ("log1p(y) ~ a:y", "The response's column y is also among the terms"),
        ("g ~ a", "g is categorical; use a numeric column"),
        ("C(grade) ~ a", "the response must be numeric"),
        ("y ~ log(g)", "g is categorical; use a numeric column"),
        ("y ~ C(a)", "a is numeric and has no levels"),
        ('y ~ C(g, ref="x")', "position 14 of the formula: the reference is not one"),
        ("y ~ C(g, ref=u)", "write the level in quotes, or as a whole number"),
        ("y ~ C(grade, ref=2.5)", "the reference is not one"),
        (
            'y ~ C(g, base="u")',
            'write ref="level" or one of Sum, Helmert, Treatment after the comma',
        ),
        ('y ~ C(g, ref="u"', "write '\\)'"),
        ("h:b ~ a", "use a single response"),
        ("y ~ C(log(x2))", "position 7 of the formula: log is numeric and has no levels"),
        ("y ~ a**2", "write a power as I"),
        ("y ~ (a + b)^1.5", "use a whole power from 1 to 6"),
        ("y ~ (a + b)^a", "write a whole number after the power"),
        ("y ~ I(a*b)", "columns are multiplied as terms, x1:x2"),
        ("y ~ I(a + b)", "a term has one column. Write a \\+ b as terms of their own"),
        ("y ~ I(1/a)", "1/x is I\\(x\\*\\*-1\\)"),
        ("y ~ I(a*0)", "multiply and divide by numbers above 0"),
        ("y ~ I(a/-2)", "multiply and divide by numbers above 0"),
        ("y ~ abs(a)", "use one of the functions log"),
        ("y ~ np.abs(a)", "use one of the functions log"),
        ("y ~ splines::ns(a)", "or C, poly or bs as a term of its own"),
        ("y ~ a + offset(log(x2))", 'position 9 .* field offset="t"; .* field exposure="t"'),
        ("y ~ a %on% b", "write %in%, or ':'"),
        ("y ~ .", "position 5 of the formula: name the columns"),
        ("y ~ I(a**2**3)", "put brackets around the inner power"),
        ("y ~ I(a**b)", "write a number as the exponent"),
        ("y ~ I(a**1e999)", "write a number that a double can hold"),
        ("y ~ 2", "the only numbers among the terms are 0 and 1"),
        ("y ~ 1:a", "leave 0 and 1 alone"),
        ("y ~ a:1", "write 0 and 1 as terms of their own"),
        ("y ~ (0 + a)", "write 0 and 1 as terms of their own"),
        ("y ~ 0", "The formula has no terms"),
        ("y ~ a - a - 1", "The formula has no terms"),
        (
            "y ~ system(a)",
            "use one of the functions log, log1p, log10, sqrt, exp, center, scale, year",
        ),
        ("y ~ `log`(a)", "use one of the functions|use \\+ - \\* / :"),
        ("y ~ C(zip)", "use a factor with at most 1,024 levels; zip has more"),
        ("y ~ a , b", "use \\+ - \\* / : and brackets only"),
        ("y ~ (a", "write '\\)'"),
        ("y ~ a)", "use \\+ - \\* / : and brackets only"),
        ("y ~ 'a'", "write a column"),
        ("y ~ `a", "The character at position 5 of the formula cannot be used"),
        ("y ~ \N{CYRILLIC SMALL LETTER A}", "The character at position 5 of the formula"),
        ("y ~ a\0", "The character at position 6 of the formula"),
        ("y ~ `a\n`", "The character at position 5 of the formula"),
    ],
)
def test_refusals_say_what_to_change(text: str, sentence: str, schema: Schema) -> None:
    with pytest.raises(InvalidFormula, match=sentence):
        parse_formula(text, schema)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('x') ~ y",
        "y ~ evilname",
        "y ~ evilname(a)",
        "y ~ a + 'evilname'",
        "y ~ `evilname`",
        "y ~ lambda evilname: 0",
    ],
)
def test_no_refusal_echoes_the_input(text: str, schema: Schema) -> None:
    with pytest.raises(InvalidFormula) as caught:
        parse_formula(text, schema)
    assert not any(word in caught.value.detail for word in ("evilname", "system", "__"))
    with pytest.raises(InvalidFormula) as caught:
        parse_formula("y ~ a", schema, f'g == "evilname" or {text}')
    assert "evilname" not in caught.value.detail


@pytest.mark.parametrize(
    ("text", "limits", "sentence"),
    [
        ("y ~ a" + " " * 8_000, Limits(), "too long: at most 8,000 characters"),
        ("y ~ " + "(" * 9_000, Limits(), "too long"),
        ("y ~ " + "(" * 900, Limits(), "position 25 of the formula: nest at most 20 levels"),
        ("y ~ I" + "(" * 21 + "a" + ")" * 21, Limits(), "nest at most 20 levels"),
        ("y ~ a + x1 + x2", Limits(max_columns=3), "more than 3 design columns"),
        ("y ~ C(grade):g", Limits(), None),
        ("y ~ C(grade):g:h:k", Limits(max_columns=64), "more than 64 design columns"),
        ("y ~ a:b:i:x1:x2:g:h", Limits(), "use at most 6 factors in an interaction"),
        ("y ~ a*b*i*x1*x2*g", Limits(max_columns=64), "more than 64 design columns"),
        ("y ~ " + ":".join(["(a*b*i*x1*x2)"] * 20), Limits(), "there are too many products"),
        ("y ~ " + "+".join(["(a*b*i*x1*x2)"] * 90), Limits(), "there are too many products"),
    ],
)
def test_limits(text: str, limits: Limits, sentence: str | None, schema: Schema) -> None:
    if sentence is None:
        assert len(parse_formula(text, schema, limits=limits).names) == 18
        return
    with pytest.raises(InvalidFormula, match=sentence):
        parse_formula(text, schema, limits=limits)


def test_exactly_the_limit_of_columns_is_allowed(schema: Schema) -> None:
    assert len(names("y ~ a + x1", schema)) == 3
    assert len(parse_formula("y ~ a + x1", schema, limits=Limits(max_columns=3)).terms) == 2
    assert (
        len(parse_formula("y ~ 0 + a + x1 + x2", schema, limits=Limits(max_columns=3)).terms) == 3
    )


def test_nesting_up_to_the_limit_is_allowed(schema: Schema) -> None:
    text = "y ~ " + "(" * 20 + "a" + ")" * 20
    assert names(text, schema) == ["Intercept", "a"]


def test_a_mask_design_reads_columns_and_where(schema: Schema) -> None:
    design = mask_design(["x1"], schema, "grade >= 3")
    assert design == Design(None, (), False, design.where, ("x1", "grade"), ("x1",))
    assert mask_design([], schema) == Design(None, (), False, None, ())
    with pytest.raises(InvalidQuery, match="names a column that the data set does not have"):
        mask_design(["secret"], schema)


def test_a_categorical_column_of_two_levels_is_a_response(schema: Schema) -> None:
    design = parse_formula("k ~ a", schema)
    assert design.response == Term("k[Zürich]", (Indicator("k", 1.0),), 0.0, 1.0, dummy=True)
    assert design.columns == ("k", "a")
    with pytest.raises(InvalidFormula, match="also among the terms"):
        parse_formula("k ~ a + k", schema)


def test_a_design_has_up_to_256_columns_and_a_study_64() -> None:
    wide = Schema(tuple(Column(f"x{j}", Kind.NUMERIC, -9.0, 9.0) for j in range(257)))
    terms = [f"x{j}" for j in range(1, 257)]
    assert len(parse_formula("x0 ~ " + "+".join(terms[:255]), wide).names) == 256
    with pytest.raises(InvalidFormula, match="256 design columns"):
        parse_formula("x0 ~ " + "+".join(terms), wide)
    facts = DatasetFacts("d", "d", 1, "v", 10_000, wide)
    with pytest.raises(ReticentError, match="64"):
        STUDY.plan(facts, Study(tuple(terms[:64])), PrivacyCost(10**9, 10**12, 10**9))
