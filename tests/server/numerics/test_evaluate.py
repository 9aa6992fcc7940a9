# SPDX-License-Identifier: Apache-2.0
"""Terms and masks on a block: elementwise, whatever the block."""

import numpy as np

from reticent_server.domain.design import (
    AnyOf,
    Apply,
    ColumnValue,
    Compare,
    Design,
    Indicator,
    Not,
    Term,
)
from reticent_server.domain.steps import Block
from reticent_server.numerics.evaluate import evaluate, evaluate_term, holds, in_use

X = np.array([0.0, 1.0, 4.0, 2.0])
G = np.array([0.0, 2.0, 2.0, 1.0])
BLOCK = Block(0, 4, {"x": X, "g": G}, {"x": np.array([True, False, False, False])})


def test_a_column_is_a_view_of_the_block() -> None:
    assert evaluate(ColumnValue("x"), BLOCK) is X


def test_expressions_and_products() -> None:
    cube = Apply("power", ColumnValue("x"), 3.0)
    assert evaluate(cube, BLOCK).tolist() == [0.0, 1.0, 64.0, 8.0]
    assert evaluate(Indicator("g", 2.0), BLOCK).tolist() == [0.0, 1.0, 1.0, 0.0]
    term = Term("x:g[2]", (ColumnValue("x"), Indicator("g", 2.0), cube), 0, 256)
    assert evaluate_term(term, BLOCK).tolist() == [0.0, 1.0, 256.0, 0.0]


def test_undefined_values_give_no_warning() -> None:
    assert evaluate(Apply("log", ColumnValue("x")), BLOCK)[0] == -np.inf


def test_a_record_is_in_use_where_the_condition_holds_and_nothing_is_missing() -> None:
    where = Not(AnyOf((Compare("x", ">", 3.0), Compare("g", "==", 9.0))))
    assert holds(where, BLOCK).tolist() == [True, True, False, True]
    design = Design(None, (), False, where, ("x", "g"), ("x",))
    assert in_use(design, BLOCK).tolist() == [False, True, False, True]


def test_values_do_not_depend_on_the_block() -> None:
    term = Term("t", (Apply("exp", ColumnValue("x")), ColumnValue("g")), 0, 1)
    whole = evaluate_term(term, BLOCK)
    for row in range(4):
        one = Block(row, 1, {"x": X[row : row + 1], "g": G[row : row + 1]}, {})
        assert evaluate_term(term, one)[0] == whole[row]


def test_times_since_an_event_are_none_where_it_never_happens() -> None:
    from reticent_server.domain.design import EventTime
    from reticent_server.numerics.evaluate import evaluate

    columns = {"t": np.array([3.0, 3.0, 3.0, 3.0, 5.0]), "s": np.array([3.0, 0.0, -9.0, 2.0, 2.0])}
    missing = {"s": np.array([False, True, False, False, False])}
    rows = Block(0, 5, columns, missing)
    assert evaluate(EventTime("t", "s", 0, np.inf, -9.0), rows).tolist() == [1, 0, 0, 1, 1]
    assert evaluate(EventTime("t", "s", 0, np.inf), rows).tolist() == [1, 0, 1, 1, 1]
    assert evaluate(EventTime("t", "s", 1, 2, -9.0), rows).tolist() == [0, 0, 0, 1, 0]
    assert evaluate(EventTime("s", None, 0, 2), rows).tolist() == [0, 0, 0, 1, 1]
