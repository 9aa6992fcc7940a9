# SPDX-License-Identifier: Apache-2.0
"""Deviations and means of persons, against numpy on one person after the other."""

from typing import Any

import numpy as np
import pytest

from reticent_server.domain.schema import ABSENT, Column, ColumnKind, Schema, Unit
from reticent_server.domain.steps import Block
from reticent_server.formula import parse_formula, person_effects, with_person_means
from reticent_server.numerics.person_columns import OUT, STRETCH, prepared
from support.seeds import seeded

M = 4
COLUMNS = (
    Column("x", ColumnKind.NUMERIC, -5.0, 5.0),
    Column("z", ColumnKind.NUMERIC, 0.0, 5.0, missing=("",)),
    Column("y", ColumnKind.NUMERIC, -9.0, 9.0),
)
SCHEMA = Schema(COLUMNS, Unit("person", M))


def block(seed: int = 2, persons: int = 60) -> Block:
    rng = seeded(seed)
    absent = np.arange(M)[None, :] >= rng.integers(0, M + 1, (persons, 1))
    missing = rng.random((persons, M)) < 0.1
    columns = {"x": rng.normal(size=persons * M), "y": rng.normal(size=persons * M)}
    columns["z"] = np.where(missing.ravel(), 0.0, rng.random(persons * M))
    masks = {ABSENT: absent.ravel(), "z": missing.ravel()}
    return Block(0, persons * M, columns, masks)


def made(design: Any, rows: Block) -> Any:
    ready = prepared(design, rows)
    terms = (design.response, *design.terms)
    values = [ready.columns[t.factors[0].column] for t in terms]
    return np.array(values), ~ready.missing[OUT], ready.columns[STRETCH]


def test_deviations_are_those_of_each_person_s_rows_in_use() -> None:
    rows = block()
    design = person_effects(parse_formula("y ~ x + z", SCHEMA, "x > -1"), SCHEMA)
    values, used, stretch = made(design, rows)
    in_use = ~rows.missing[ABSENT] & ~rows.missing["z"] & (rows.columns["x"] > -1)
    persons = 0
    for k in range(0, rows.rows, M):
        own = np.flatnonzero(in_use[k : k + M]) + k
        enough = len(own) > 1
        persons += enough
        assert used[k : k + M].sum() == len(own) * enough
        for name, value in zip(("y", "x", "z"), values, strict=True):
            expected = np.zeros(M)
            if enough:
                expected[own - k] = rows.columns[name][own] - rows.columns[name][own].mean()
            np.testing.assert_allclose(value[k : k + M], expected, atol=1e-14)
        if enough:
            np.testing.assert_allclose(stretch[own], np.sqrt(len(own) / (len(own) - 1)))
    assert persons > 20


def test_bounds_hold_and_are_attained() -> None:
    design = person_effects(parse_formula("y ~ x", SCHEMA), SCHEMA)
    x = np.array([5.0, -5.0, -5.0, -5.0])
    rows = Block(0, M, {"x": x, "y": -x}, {ABSENT: np.zeros(M, bool)})
    (y, deviation), _, _ = made(design, rows)
    (term,) = design.terms
    assert (term.lower, term.upper) == (-7.5, 7.5)
    assert deviation.max() == 7.5
    assert y.min() == -7.5
    assert design.response is not None
    assert design.response.upper == pytest.approx(18 * 3 / 4)


def test_a_row_with_a_value_that_is_not_finite_is_no_row() -> None:
    design = person_effects(parse_formula("y ~ x", SCHEMA), SCHEMA)
    x = np.array([1.0, 3.0, np.inf, np.nan])
    rows = Block(0, M, {"x": x, "y": np.arange(4.0)}, {ABSENT: np.zeros(M, bool)})
    (y, deviation), used, _ = made(design, rows)
    assert used.tolist() == [True, True, False, False]
    assert deviation.tolist() == [-1, 1, 0, 0]
    assert y.tolist() == [-0.5, 0.5, 0, 0]


def test_means_are_those_of_the_rows_in_use() -> None:
    design = with_person_means(
        parse_formula("y ~ x + mean(x) + z", SCHEMA, person_means=True), SCHEMA
    )
    rows = block()
    ready = prepared(design, rows)
    (name,) = {c.name for c in design.persons.made} if design.persons else {""}
    used = ~rows.missing[ABSENT] & ~rows.missing["z"]
    x, means = rows.columns["x"].reshape(-1, M), ready.columns[name].reshape(-1, M)
    for own, mine, mean in zip(used.reshape(-1, M), x, means, strict=True):
        expected = np.where(own, mine[own].mean() if own.any() else 0.0, 0.0)
        np.testing.assert_allclose(mean, expected, atol=1e-14)
    np.testing.assert_array_equal(ready.missing[OUT], ~used)


def test_a_design_of_stored_columns_is_left_as_it_is() -> None:
    rows = block()
    design = parse_formula("y ~ x", SCHEMA)
    assert with_person_means(design, SCHEMA) is design
    assert prepared(design, rows) is rows


def test_a_person_is_the_same_in_any_block() -> None:
    design = person_effects(parse_formula("y ~ x + z", SCHEMA), SCHEMA)
    rows = block()
    values, used, stretch = made(design, rows)
    for k in range(0, rows.rows, M):
        cut = slice(k, k + M)
        one = Block(
            k,
            M,
            {n: v[cut] for n, v in rows.columns.items()},
            {n: v[cut] for n, v in rows.missing.items()},
        )
        own = made(design, one)
        for whole, alone in zip((values[:, cut], used[cut], stretch[cut]), own, strict=True):
            np.testing.assert_array_equal(whole, alone)
