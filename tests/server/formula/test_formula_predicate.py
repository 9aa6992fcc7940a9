# SPDX-License-Identifier: Apache-2.0
"""`where`: what it means, record by record, and what it refuses."""

import numpy as np
import pytest

from reticent_server.domain.design import AllOf, AnyOf, Compare, Not
from reticent_server.domain.schema import Schema
from reticent_server.domain.steps import Block
from reticent_server.errors import InvalidFormula
from reticent_server.formula import parse_formula, parse_predicate
from reticent_server.numerics.evaluate import holds

A = np.array([-1.0, -0.5, 0.0, 0.5, 1.0, 0.25])
GRADE = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
G = np.array([0.0, 1.0, 2.0, 0.0, 1.0, 2.0])
B = np.array([0.0, 1.0, 1.0, 0.0, 0.0, 1.0])
BLOCK = Block(0, 6, {"a": A, "grade": GRADE, "g": G, "b": B}, {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("grade >= 3", GRADE >= 3),
        ("3 < grade", GRADE > 3),
        ("3 >= grade", GRADE <= 3),
        ("a < -.25", A < -0.25),
        ("a == +5e-1", A == 0.5),
        ("b != 1", B == 0),
        ('g == "v"', G == 1),
        ("'v' != g", G != 1),
        ('g in ("u", "w")', G != 1),
        ('g not in ("u", "w",)', None),
        ('g not in ("u", "w")', G == 1),
        ("grade in (1, 6)", (GRADE == 1) | (GRADE == 6)),
        ("not grade >= 3", GRADE < 3),
        ("grade > 1 or a > 0 and b == 1", (GRADE > 1) | ((A > 0) & (B == 1))),
        ("(grade > 1 or a > 0) and b == 1", ((GRADE > 1) | (A > 0)) & (B == 1)),
        ("not b == 1 and a > 0", (B == 0) & (A > 0)),
        ("not (b == 1 and a > 0)", (B == 0) | (A <= 0)),
    ],
)
def test_meaning(text: str, expected: np.ndarray | None, schema: Schema) -> None:
    if expected is None:
        with pytest.raises(InvalidFormula):
            parse_predicate(text, schema)
        return
    assert holds(parse_predicate(text, schema), BLOCK).tolist() == expected.tolist()


def test_structure(schema: Schema) -> None:
    assert parse_predicate("grade > 1 and not (b == 1 or k == 'Zürich')", schema) == AllOf(
        (
            Compare("grade", ">", 1.0),
            Not(AnyOf((Compare("b", "==", 1.0), Compare("k", "==", 1.0)))),
        )
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("secret == 1", "At position 1 of the where condition: unknown column"),
        ("", "compare a column with a number"),
        ("b", "write one of == != < <= > >= or in"),
        ("a = 1", "write one of == != < <= > >= or in"),
        ("-1 < a < 1", "join comparisons with and, or and brackets"),
        ("a == 1 & b == 1", "join comparisons with and, or and brackets"),
        ("(a == 1", "write '\\)'"),
        ("a == g", "compare a, which is not categorical, with a number"),
        ('a == "1"', "compare a, which is not categorical, with a number"),
        ('"1" == a', "compare a, which is not categorical, with a number"),
        ("g == 1", 'use a declared level of g in quotes \\("u", "v", "w"\\)'),
        ("1 == g", "use a declared level of g in quotes"),
        ('g == "evil"', 'use a declared level of g in quotes \\("u", "v", "w"\\)'),
        ('"evil" == g', "use a declared level of g in quotes"),
        ('g < "v"', "g is categorical and has no order"),
        ('"v" <= g', "g is categorical and has no order"),
        ("g in ()", "use a declared level of g in quotes"),
        ("g in 'u'", "write '\\('"),
        ("g not 'u'", "write `in"),
        ("a == 1e999", "write a number that a double can hold"),
        ("a == nan", "compare a, which is not categorical, with a number"),
        ("not " * 21 + "b == 1", "nest at most 20 levels"),
        ("(" * 21 + "b == 1", "nest at most 20 levels"),
        ("b == 1 or " * 128 + "b == 1", "use at most 128 comparisons"),
        ("b == 1" + " " * 8_000, "The where condition is too long"),
        ("b == 1; a == 1", "The character at position 7 of the where condition cannot be used"),
    ],
)
def test_refusals_say_what_to_change(text: str, sentence: str, schema: Schema) -> None:
    with pytest.raises(InvalidFormula, match=sentence) as caught:
        parse_predicate(text, schema)
    assert "evil" not in caught.value.detail
    with pytest.raises(InvalidFormula, match=sentence):
        parse_formula("y ~ a", schema, text)
