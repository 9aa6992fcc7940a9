# SPDX-License-Identifier: Apache-2.0
"""Tables of cliques: the records' own counts where there is hardly noise, and what is refused."""

from typing import Any

import numpy as np
import pytest

from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.domain.steps import Block
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.synthetic.kind import KIND, Synthetic
from reticent_server.kinds.synthetic.plan import MAX_TABLES
from support.kinds.named_tests import offer, people, people_facts
from support.kinds.recipes import block_of, facts_of, outcome

N = 2000
QUIET = offer(10**6, 100)


def ask(query: Synthetic, privacy: Any = QUIET) -> Any:
    return outcome(KIND.plan(people_facts(N), query, privacy), block_of(**people(N)))


def test_every_pair_is_counted_without_cliques() -> None:
    found = ask(Synthetic(("g", "b", "k")))
    assert [of.columns for of in found.tables] == [["g", "b"], ["g", "k"], ["b", "k"]]
    rows = people(N)
    counts = np.histogram2d(rows["g"], rows["k"], [np.arange(4) - 0.5, np.arange(11) - 0.5])[0]
    np.testing.assert_allclose(found.tables[1].values, counts.ravel(), atol=1)
    assert [of.total for of in found.tables] == [N] * 3
    assert found.tables[0].cells == ["a × 0", "a × 1", "b × 0", "b × 1", "c × 0", "c × 1"]
    assert sum(found.tables[1].values) == pytest.approx(N)


def test_a_clique_within_another_is_its_margin_and_a_column_in_none_is_counted_alone() -> None:
    cliques = (("g", "b"), ("b", "g"), ("b",), ("b", "g", "y"))
    found = ask(Synthetic(("y", "g", "b", "k"), cliques, bins=3))
    assert [of.columns for of in found.tables] == [["b", "g", "y"], ["k"]]


def test_numbers_have_bins_between_released_quantiles_and_their_middles() -> None:
    found = ask(Synthetic(("y", "b"), bins=4))
    bins = [row for row in found.levels if row.column == "y"]
    assert len(bins) == 4
    assert (bins[0].lower, bins[-1].upper) == (-10.0, 10.0)
    assert [row.number for row in bins] == [(row.lower + row.upper) / 2 for row in bins]
    assert [row.number for row in found.levels[4:]] == [0.0, 1.0]
    counts = np.reshape(found.tables[0].values, (4, 2)).sum(axis=1)
    np.testing.assert_allclose(counts / N, 0.25, atol=0.05)


def test_a_bin_of_whole_numbers_stands_for_the_middle_of_those_that_it_holds() -> None:
    age = Column("age", ColumnKind.INTEGER, 0, 99)
    facts = facts_of(N, (age, Column("d", ColumnKind.BOOLEAN, 0, 1)))
    found = KIND.plan(facts, Synthetic(("age", "d"), bins=4), QUIET)
    bins = outcome(found, block_of(age=np.arange(N) % 100.0, d=np.zeros(N))).levels[:4]
    assert [row.upper for row in bins] == [24.0, 49.0, 74.0, 99.0]
    assert [row.number for row in bins] == [12.0, 37.0, 62.0, 87.0]


def test_bins_of_large_or_near_numbers_have_names_of_their_own() -> None:
    columns = (Column("d", ColumnKind.NUMERIC, 1e6, 1e6 + 8), Column("c", ColumnKind.NUMERIC, 5, 5))
    plan = KIND.plan(facts_of(N, columns), Synthetic(("d", "c"), bins=8), QUIET)
    found = outcome(plan, block_of(d=1e6 + np.arange(N) % 8.0, c=np.full(N, 5.0)))
    assert [row.level for row in found.levels][:2] == ["1000000 to 1000001", "1000001 to 1000002"]
    assert [(row.level, row.number) for row in found.levels[8:]] == [("5 to 5", 5.0)]
    np.testing.assert_allclose(found.tables[0].values, N / 8, atol=1)


def test_whole_numbers_begin_bins_even_where_quantiles_are_close() -> None:
    facts = facts_of(
        N, (Column("y", ColumnKind.INTEGER, 0, 1000), Column("d", ColumnKind.BOOLEAN, 0, 1))
    )
    plan: Any = KIND.plan(facts, Synthetic(("y", "d"), bins=64), QUIET)
    edges = plan.map_fn.columns[0][1].edges
    assert all(edge.is_integer() for edge in map(float, edges))


def test_records_with_a_missing_cell_are_out_of_its_tables_alone() -> None:
    columns = tuple(
        Column(name, ColumnKind.BOOLEAN, 0, 1, missing=("",) if name == "m" else ())
        for name in ("a", "b", "m")
    )
    plan = KIND.plan(facts_of(N, columns), Synthetic(("a", "b", "m")), QUIET)
    rows = {name: np.arange(N) % 2.0 for name in ("a", "b", "m")}
    block = Block(0, N, rows, {"m": np.ones(N, dtype=bool)})
    found = outcome(plan, block)
    assert [of.total for of in found.tables] == [N, None, None]
    assert np.abs(found.tables[1].values + found.tables[2].values).max() < 3
    assert sum(found.tables[0].values) == pytest.approx(N)


def test_a_condition_is_read_once_for_all_tables() -> None:
    """120 tables of a condition with as many comparisons as there may be."""
    columns = tuple(Column(f"c{k}", ColumnKind.BOOLEAN, 0, 1) for k in range(16))
    where = " and ".join(f"c{k % 16} <= 1" for k in range(128))
    plan: Any = KIND.plan(
        facts_of(N, columns), Synthetic(tuple(c.name for c in columns), where=where), QUIET
    )
    assert plan.map_fn.where.where is not None
    assert all(present.where is None for present, _ in plan.map_fn.columns)


def test_a_table_of_records_in_use_has_no_public_sum() -> None:
    found = ask(Synthetic(("g", "b"), where="x > 0"))
    assert found.tables[0].total is None
    assert sum(found.tables[0].values) == pytest.approx((people(N)["x"] > 0).sum(), abs=3)


def test_each_table_has_an_equal_share() -> None:
    plans: list[Any] = [
        KIND.plan(people_facts(N), Synthetic(columns), offer(1))
        for columns in (("g", "b"), ("g", "b", "k", "y"))
    ]
    assert plans[1].noise == pytest.approx(plans[0].noise * 6**0.5, rel=0.01)
    assert [plan.forecast["tables"] for plan in plans] == [1, 6]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (Synthetic(("g", "g")), "columns names a column twice"),
        (Synthetic(("g", "b"), (("g", "g"),)), "A clique names a column twice"),
        (Synthetic(("g", "b"), (("g", "k"),)), "does not have"),
        (Synthetic(("g", "nobody")), "does not have"),
        (Synthetic(("y", "x", "m", "k"), (("y", "x", "m"),), 64), "cells"),
    ],
)
def test_what_cannot_be_counted_is_refused_with_a_sentence(query: Any, said: str) -> None:
    with pytest.raises(InvalidQuery, match=said):
        KIND.plan(people_facts(N), query, QUIET)


def test_there_are_at_most_so_many_tables() -> None:
    columns = tuple(Column(f"c{k}", ColumnKind.BOOLEAN, 0, 1) for k in range(16))
    names = tuple(column.name for column in columns)
    plan = KIND.plan(facts_of(N, columns), Synthetic(names), QUIET)
    assert plan.forecast["tables"] == 120 <= MAX_TABLES
