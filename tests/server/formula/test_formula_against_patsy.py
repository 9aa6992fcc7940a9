# SPDX-License-Identifier: Apache-2.0
"""Whole design matrices against patsy's own evaluation of the same formula."""

import numpy as np
import patsy
import pytest
from numpy import exp, log, log1p, log10, sqrt  # noqa: F401, patsy looks the functions up here

from reticent_server.domain.schema import Schema
from reticent_server.domain.steps import Block
from reticent_server.formula import parse_formula
from reticent_server.numerics.evaluate import evaluate_term
from support.seeds import seeded

RNG = seeded(5)
ROWS = 80
LEVELS = {"g": np.array(["u", "v", "w"]), "h": np.array(["0", "1"])}
CODES = {"g": RNG.integers(0, 3, ROWS), "h": RNG.integers(0, 2, ROWS)}
NUMBERS = {
    "y": RNG.uniform(0, 100, ROWS),
    "x1": RNG.uniform(-1, 5, ROWS),
    "x2": RNG.uniform(0.5, 5, ROWS),
    "a": RNG.uniform(-1, 1, ROWS),
    "b": RNG.integers(0, 2, ROWS).astype(float),
    "grade": RNG.permutation(np.arange(ROWS) % 6 + 1.0),
}
BLOCK = Block(0, ROWS, NUMBERS | {k: v.astype(float) for k, v in CODES.items()}, {})
FRAME = NUMBERS | {k: LEVELS[k][v] for k, v in CODES.items()}


def columns(formula: str, schema: Schema) -> np.ndarray:
    design = parse_formula(formula, schema)
    head = [np.ones(ROWS)] if design.intercept else []
    return np.array([*head, *(evaluate_term(t, BLOCK) for t in design.terms)])


def in_some_order(matrix: np.ndarray) -> np.ndarray:
    rounded = np.round(matrix, 10) + 0.0
    return rounded[np.lexsort(rounded.T[::-1])]


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "terms",
    [
        "x1 + C(g) + log(x2) + x1:x2 + a*b",
        "0 + x1 + a",
        "0 + g",
        "0 + g + h",
        "h + g - 1",
        "g:h",
        "0 + g:h",
        "g*h",
        "g*h - g",
        "g*h - g - h",
        "g + g:h",
        "0 + g + g:h",
        "0 + x1 + g",
        "g:x1",
        "x1 + g:x1",
        "g*x1",
        "0 + g:x1",
        "g:x1:a + g:a",
        "0 + g*h*C(grade)",
        "g:h:C(grade)",
        "C(grade)*x1 + C(grade):h",
        "(x1 + a + b)*g",
        "(x1 + g):(a + h)",
        "x1*a*b*g",
        "x1:g:a + a:g + h:b - 1",
        "I(x1**2) + I(x2**-1.5) + sqrt(x2) + log1p(x2) + log10(x2) + exp(a)",
        "log(x2):g + sqrt(exp(a)):h",
        "C(g, Sum) + x1",
        "0 + C(g, Sum) + x1",
        "C(g, Sum)*C(h, Helmert)",
        "C(grade, Helmert)*x1",
        "0 + C(grade, Helmert):x1",
        "C(grade, Sum):C(g, Helmert)",
        "C(g, Treatment)*h",
    ],
)
def test_design_matrix(terms: str, schema: Schema) -> None:
    formula = f"log1p(y) ~ {terms}"
    ours = columns(formula, schema)
    response, theirs = patsy.dmatrices(formula, FRAME)
    assert ours.shape == np.asarray(theirs).T.shape
    assert in_some_order(ours) == pytest.approx(in_some_order(np.asarray(theirs).T), abs=1e-9)
    own = parse_formula(formula, schema).response
    assert own is not None
    assert evaluate_term(own, BLOCK) == pytest.approx(np.asarray(response)[:, 0])


@pytest.mark.parametrize("contrast", ["Sum", "Helmert"])
def test_names_and_columns_of_contrasts_are_those_of_patsy(contrast: str, schema: Schema) -> None:
    for terms in (f"C(g, {contrast})", f"0 + C(g, {contrast})"):
        design = parse_formula(f"y ~ {terms}", schema)
        theirs = patsy.dmatrix(terms, FRAME, return_type="dataframe")
        assert sorted(design.names) == sorted(theirs.columns)
        for term in design.terms:
            assert evaluate_term(term, BLOCK) == pytest.approx(theirs[term.name].to_numpy())
