# SPDX-License-Identifier: Apache-2.0
"""Factors whose levels are joined by public lists, or by the released profile; and contrasts of
them.
"""

from itertools import product

import numpy as np
import pytest

from reticent_server.domain.facts import ColumnProfile, Profile
from reticent_server.domain.schema import Column, Schema
from reticent_server.domain.schema import ColumnKind as Kind
from reticent_server.domain.steps import Block
from reticent_server.errors import InvalidFormula
from reticent_server.formula import parse_formula, parse_variables
from reticent_server.numerics.evaluate import evaluate_term

LEVELS = tuple("abcde")
MANY = tuple(f"z{k}" for k in range(300))
SCHEMA = Schema(
    (
        Column("y", Kind.NUMERIC, 0, 100),
        Column("x", Kind.NUMERIC, -2, 5),
        Column("g", Kind.CATEGORICAL, 0, 4, LEVELS, missing=("?",)),
        Column("grade", Kind.INTEGER, 1, 6),
        Column("odd", Kind.CATEGORICAL, 0, 2, ('say "no"', "it's", "c")),
        Column("zip", Kind.CATEGORICAL, 0, 299, MANY),
    )
)
COUNTS = (30.0, 900.0, -4.0, 500.0, 31.0)
PROFILE = Profile({"g": ColumnProfile(counts=COUNTS, count_sd=3.0)})
CELLS = np.array([0.0, 1.0, 2.0, 3.0, 4.0])


def columns(terms: str, profile: Profile | None = None) -> dict[str, list[float]]:
    """The values of a design's columns at the levels a, b, c, d, e and at the grades 1 to 5."""
    cells = {"g": CELLS, "grade": CELLS + 1, "x": np.full(5, 2.0)}
    block = Block(0, 5, cells, {})
    design = parse_formula(f"y ~ {terms}", SCHEMA, profile=profile)
    return {t.name: evaluate_term(t, block).tolist() for t in design.terms}


def test_merged_levels_are_one_level() -> None:
    assert columns('merge(g, low=["b", "d"], `the rest`=["c"])') == {
        'merge(g, low=["b", "d"], `the rest`=["c"])[low]': [0, 1, 0, 1, 0],
        'merge(g, low=["b", "d"], `the rest`=["c"])[the rest]': [0, 0, 1, 0, 0],
        'merge(g, low=["b", "d"], `the rest`=["c"])[e]': [0, 0, 0, 0, 1],
    }
    assert next(iter(columns('0 + merge(g, low=["a", "e"])').values())) == [1, 0, 0, 0, 1]


def test_a_list_keeps_levels_and_joins_the_others() -> None:
    assert columns('lump(g, keep=["d", "b"])') == {
        'lump(g, keep=["d", "b"])[b]': [0, 1, 0, 0, 0],
        'lump(g, keep=["d", "b"])[d]': [0, 0, 0, 1, 0],
    }
    rest = columns('C(lump(grade, keep=[2, 3], other="rest"), ref=2)')
    name = 'lump(grade, keep=["2", "3"], other="rest")'
    assert rest == {f"{name}[rest]": [1, 0, 0, 1, 1], f"{name}[3]": [0, 0, 1, 0, 0]}


def test_the_most_frequent_levels_are_the_profile_s() -> None:
    assert columns("lump(g, n=2)", PROFILE) == columns('lump(g, keep=["b", "d"])')
    assert columns("lump(g, n=3)", PROFILE) == columns('lump(g, keep=["b", "d", "e"])')
    _, names = parse_variables(["lump(g, n=2)"], SCHEMA, profile=PROFILE)
    assert names["lump(g, n=2)"] == tuple(columns('lump(g, keep=["b", "d"])'))


def test_contrasts_of_joined_levels() -> None:
    assert columns('C(merge(g, low=["b", "c"]), Sum)') == {
        'C(merge(g, low=["b", "c"]), Sum)[S.a]': [1, 0, 0, 0, -1],
        'C(merge(g, low=["b", "c"]), Sum)[S.low]': [0, 1, 1, 0, -1],
        'C(merge(g, low=["b", "c"]), Sum)[S.d]': [0, 0, 0, 1, -1],
    }
    assert columns('C(lump(g, keep=["a", "b"]), Helmert)') == {
        'C(lump(g, keep=["a", "b"]), Helmert)[H.b]': [-1, 1, 0, 0, 0],
        'C(lump(g, keep=["a", "b"]), Helmert)[H.other]': [-1, -1, 2, 2, 2],
    }


@pytest.mark.parametrize(
    "terms",
    [
        "C(g, Sum)*x",
        "C(grade, Helmert):x",
        'C(merge(g, low=["b", "c"]), Helmert)',
        'lump(g, keep=["a"]):C(grade, Sum)',
    ],
)
def test_no_cell_gives_a_value_out_of_the_declared_range(terms: str) -> None:
    """The noise is made for [lower, upper]: every stored value, and a code that nobody declared,
    stays within.
    """
    design = parse_formula(f"y ~ 0 + {terms}", SCHEMA)
    cells = np.array(list(product([*CELLS, -1.0, 9.0], [*(CELLS + 1), 6.0, 0.0, 7.5], [-2.0, 5.0])))
    block = Block(0, len(cells), dict(zip(("g", "grade", "x"), cells.T, strict=True)), {})
    for term in design.terms:
        values = evaluate_term(term, block)
        assert term.lower <= values.min()
        assert values.max() <= term.upper
        assert {term.lower, term.upper} & {values.min(), values.max()}


def test_quotes_in_levels() -> None:
    design = parse_formula("""y ~ lump(odd, keep=['say "no"'])""", SCHEMA)
    assert design.names == ("Intercept", """lump(odd, keep=['say "no"'])[other]""")
    assert parse_formula("""y ~ lump(odd, keep=["it's"])""", SCHEMA).names[1:] == (
        """lump(odd, keep=["it's"])[it's]""",
    )


def test_a_column_of_many_levels_is_joined_first() -> None:
    assert len(parse_formula('y ~ lump(zip, keep=["z1", "z299"])', SCHEMA).terms) == 2


@pytest.mark.parametrize(
    ("terms", "sentence"),
    [
        ("C(g, Su)", 'position 10 of the formula: write ref="level" or one of Sum, Helmert'),
        ("C(g, `Sum`)", "position 10 of the formula: write ref="),
        ("C(g, Sum, Sum)", r"position 13 of the formula: write '\)'"),
        ("zip", "at most 256 levels, or join levels by merge.. or lump..; zip has more"),
        ("C(zip, Sum)", "position 7 of the formula: use a factor with at most 256 levels"),
        ('merge(zip, low=["z1"])', "at most 256 levels"),
        ("merge(x, low=[1])", "x is numeric and has no levels"),
        ('merge(g, low=["z"])', "position 19 of the formula: this is not one of the declared"),
        ('merge(g, low=["a"], high=["a"])', "this level is listed already"),
        ('merge(g, low=["a"], low=["b"])', "use another name for these levels"),
        ('merge(g, c=["a", "b"])', "another level has this name"),
        ('merge(g, a=["b"], b=["a"])', "another level has this name"),
        ('merge(g, all=["a", "b", "c", "d", "e"])', "only one is left"),
        ('merge(g, "low")', "write a name for the levels that are joined"),
        ("lump(g, 3)", r'write keep=\["a", "b"\] or n=10'),
        ("lump(g, n=2)", "this column has no shares in a released one: list the levels"),
        ("lump(g, n=5)", "keep from 1 to 4 of the column's levels"),
        ("lump(g, n=1.5)", "keep from 1 to 4 of the column's levels"),
        ('lump(g, keep=["a"], other="a")', "the other levels need a name of their own"),
        ('lump(g, keep=["a"], others="b")', 'write other="name" after the comma'),
        ('lump(g, keep=["a"]) + g', "The levels of g stand in two groupings"),
        ('log(lump(g, keep=["a"]))', "position 9 of the formula: use one of the functions"),
    ],
)
def test_refusals_say_what_to_change(terms: str, sentence: str) -> None:
    with pytest.raises(InvalidFormula, match=sentence):
        parse_formula(f"y ~ {terms}", SCHEMA)


def test_a_design_names_the_levels_without_a_term() -> None:
    """The first, a chosen reference, the last of a sum contrast, the group of a merged one."""
    wanted = {
        "y ~ g": "a",
        "y ~ C(g, ref='b')": "b",
        "y ~ C(g, Sum)": "e",
        "y ~ C(g, Helmert)": "a",
        "y ~ merge(g, low=['a', 'b'])": "low",
        "y ~ x:g": "a",
    }
    for formula, level in wanted.items():
        assert dict(parse_formula(formula, SCHEMA).baselines) == {"g": level}, formula
    assert parse_formula("y ~ x", SCHEMA).baselines == ()
