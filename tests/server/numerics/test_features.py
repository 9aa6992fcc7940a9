# SPDX-License-Identifier: Apache-2.0
"""Values of features: against a plain loop over persons, and to the last bit in any stored
order.
"""

from collections.abc import Callable
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent_server.domain.persons import Feature
from reticent_server.domain.schema import Column, Schema, Unit
from reticent_server.domain.schema import ColumnKind as Kind
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.formula.features import parse_view
from reticent_server.numerics.features import person_values
from support.seeds import seeded

SCHEMA = Schema(
    (
        Column("x", Kind.NUMERIC, -3, 7, missing=("NA",)),
        Column("t", Kind.INTEGER, 0, 3),
        Column("b", Kind.BOOLEAN, 0, 1),
        Column("g", Kind.CATEGORICAL, 0, 2, ("u", "v", "w")),
    ),
    Unit("person", 6),
)
Row = tuple[float, float, float, float, bool]


def feature(text: str) -> Feature:
    (found,) = parse_view({"f": text}, SCHEMA).features
    return found


def block(rows: list[Row]) -> Block:
    """Rows (x, t, b, g, whether x is missing)."""
    x, t, b, g, missing = (
        (np.array(c) for c in zip(*rows, strict=True)) if rows else [np.zeros(0)] * 5
    )
    columns = {"x": x, "t": t, "b": b, "g": g}
    columns = {name: values.astype(np.float64) for name, values in columns.items()}
    return Block(0, len(rows), columns, {"x": missing.astype(np.bool_)})


def of_one(text: str, rows: list[Row]) -> float | None:
    """A feature of one person; None where it is missing."""
    values, missing = person_values(feature(text), block(rows), np.zeros(len(rows), np.int64), 1)
    return None if missing[0] else float(values[0])


ROWS: list[Row] = [
    (1.5, 2, 1, 0, False),
    (4.0, 1, 0, 2, False),
    (0.0, 3, 1, 1, True),
    (-2.0, 2, 0, 1, False),
]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("count()", 4),
        ("count(where=x > -3)", 3),
        ('count(where=g == "v")', 2),
        ("any(b)", 1),
        ("any(x > 4)", 0),
        ("all(b)", 0),
        ("all(t >= 1)", 1),
        ("share(b)", 0.5),
        ("share(x > 0)", 2 / 3),
        ("min(x)", -2),
        ("max(x)", 4),
        ("max(x**2)", 16),
        ("mean(x)", 3.5 / 3),
        ("mean(x, where=t == 2)", -0.25),
        ("sum(x)", 3.5),
        ("first(x, by=t)", 4),
        ("last(x, by=t)", 1.5),
        ("last(b, by=t)", 1),
        ("last(g, by=t)", 1),
        ("first(g, by=t)", 2),
        ("last(x, by=t, where=b == 0)", -2),
        ("last(x, by=x)", 4),
    ],
)
def test_values(text: str, value: float) -> None:
    assert of_one(text, ROWS) == value
    assert of_one(text, ROWS[::-1]) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("count()", 0),
        ("sum(x)", 0),
        ("any(b)", 0),
        ("all(b)", None),
        ("share(b)", None),
        ("mean(x)", None),
        ("last(x, by=t)", None),
        ("last(x, by=t, none=5)", 5),
        ("sum(x, none=-3)", -3),
        ('last(g, by=t, none="w")', 2),
    ],
)
def test_a_person_without_rows_has_what_is_declared_or_is_missing(
    text: str, value: float | None
) -> None:
    assert of_one(text, []) == value
    if "x" in text:
        assert of_one(text, [(1.0, 1, 1, 1, True)]) == value


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_a_row_that_is_not_finite_is_not_in_use(bad: float) -> None:
    rows = [*ROWS, (bad, 2.0, 1.0, 0.0, False)]
    for text in ("sum(x)", "mean(x)", "max(x)", "min(x)", "last(x, by=t)", "last(t, by=x)"):
        assert of_one(text, rows) == of_one(text, ROWS)


@pytest.mark.parametrize(
    "text", ["sum(x)", "max(x)", "mean(x)", "count()", "min(x)", "last(g, by=t)"]
)
def test_values_stay_within_the_bounds_whatever_the_rows_are(text: str) -> None:
    column = feature(text).column
    for many in ([(1e300, 1.0, 1.0, 9.0, False)] * 9, [(-1e300, 1.0, 1.0, -9.0, False)] * 9):
        found = of_one(text, many)
        assert found is not None
        assert column.lower <= found <= column.upper


TEXTS = (
    "count(where=b == 1)",
    "sum(x)",
    "mean(x)",
    "mean(x**3)",
    "min(x)",
    "max(x)",
    "share(x > 0.1)",
    "any(x > 1)",
    "all(x > 1)",
    "first(x, by=t)",
    "last(x, by=t)",
    "last(g, by=t)",
    "last(x, by=t, where=b == 0, none=-9)",
)
FINITE = st.floats(-3, 7, allow_nan=False).map(float)
ONE_ROW = st.tuples(
    st.one_of(FINITE, st.sampled_from([0.0, -0.0, 0.1, 1e-17, nan])),
    st.integers(0, 3).map(float),
    st.integers(0, 1).map(float),
    st.integers(0, 2).map(float),
    st.booleans(),
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(persons=st.lists(st.lists(ONE_ROW, max_size=9), min_size=1, max_size=6), data=st.data())
def test_any_stored_order_gives_the_same_bits(
    persons: list[list[Row]], data: st.DataObject
) -> None:
    shuffled = [data.draw(st.permutations(rows)) for rows in persons]
    for text in TEXTS:
        for left, right in zip(values_of(text, persons), values_of(text, shuffled), strict=True):
            assert left.tobytes() == right.tobytes()


def values_of(text: str, persons: list[list[Row]]) -> tuple[FloatArray, FloatArray]:
    slots = np.repeat(np.arange(len(persons)), [len(rows) for rows in persons])
    rows = block([row for rows in persons for row in rows])
    values, missing = person_values(feature(text), rows, slots, len(persons))
    return values, missing.astype(np.float64)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    persons=st.lists(st.lists(ONE_ROW, max_size=9), min_size=2, max_size=6),
    other=st.lists(ONE_ROW, max_size=9),
    place=st.integers(0, 5),
)
def test_replacing_a_persons_rows_changes_that_persons_values_only(
    persons: list[list[Row]], other: list[Row], place: int
) -> None:
    place %= len(persons)
    neighbour = [*persons[:place], other, *persons[place + 1 :]]
    for text in TEXTS:
        for left, right in zip(values_of(text, persons), values_of(text, neighbour), strict=True):
            assert np.delete(left, place).tobytes() == np.delete(right, place).tobytes()


REFERENCES: dict[str, Callable[[list[float], list[float]], float]] = {
    "sum(x)": lambda x, t: sum(sorted(x)),
    "mean(x)": lambda x, t: sum(sorted(x)) / len(x),
    "min(x)": lambda x, t: min(x),
    "max(x)": lambda x, t: max(x),
    "count(where=x >= -3)": lambda x, t: len(x),
    "first(x, by=t)": lambda x, t: min(zip(t, x, strict=True))[1],
    "last(x, by=t)": lambda x, t: max(zip(t, x, strict=True))[1],
}


@pytest.mark.parametrize("text", REFERENCES)
def test_values_are_those_of_a_loop_over_persons(text: str) -> None:
    generator = seeded(17)
    lengths = generator.integers(1, 6, 200)
    slots = np.repeat(np.arange(200), lengths)
    x, t = generator.uniform(-3, 7, len(slots)), generator.integers(0, 4, len(slots)).astype(float)
    zeros = np.zeros(len(slots))
    rows = Block(0, len(slots), {"x": x, "t": t, "b": zeros, "g": zeros}, {})
    values, missing = person_values(feature(text), rows, slots, 200)
    reference = REFERENCES[text]
    wanted = [reference(x[slots == k].tolist(), t[slots == k].tolist()) for k in range(200)]
    np.testing.assert_allclose(values, wanted, rtol=1e-15, atol=1e-14)  # roundings of a sum of 5
    assert not missing.any()


@pytest.mark.parametrize("text", ["min(x)", "max(x)", "first(x, by=t)", "last(x, by=t)"])
def test_a_zero_below_has_no_sign(text: str) -> None:
    """Which of two zeros is the smaller one would depend on the stored order."""
    value = of_one(text, [(-0.0, 1, 0, 0, False)])
    assert value == 0.0
    assert not np.signbit(value)
