# SPDX-License-Identifier: Apache-2.0
"""Curves and tests of many groups are planned to take long: what is made of the counts grows with
the groups, and a reply that is late tells how loaded the machine is.
"""

from typing import Any

import pytest

from reticent_server.domain.facts import DatasetFacts, Policy
from reticent_server.domain.query import Privacy
from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.cumulative_incidence.kind import CumulativeIncidence
from reticent_server.kinds.log_rank.kind import LogRank
from reticent_server.kinds.survival_curve.kind import SurvivalCurve
from reticent_server.pipeline.planning import plan

CUTS = (100.0, 400.0, 900.0)


def levels(name: str, count: int) -> Column:
    return Column(name, ColumnKind.CATEGORICAL, 0, count - 1, tuple(f"l{k}" for k in range(count)))


COLUMNS = (
    Column("t", ColumnKind.NUMERIC, 0, 1000),
    Column("x", ColumnKind.NUMERIC, 0, 1),
    Column("e", ColumnKind.BOOLEAN, 0, 1),
    *(levels(name, count) for name, count in {"c": 4, "few": 2, "many": 200}.items()),
)
FACTS = DatasetFacts("d", "d", 1, "v", 20_000, Schema(COLUMNS), None, Policy())


def expected_ms(query: Any) -> float:
    return float(plan(FACTS, query, Privacy(1.0, 1e-6)).expected_ms or 0.0)


# the least that 200 groups were measured to take, in milliseconds on a machine of the pace 1
@pytest.mark.parametrize(
    ("query", "taken"),
    [
        (lambda by: SurvivalCurve("t", "e", by, CUTS), 90),
        (lambda by: CumulativeIncidence("t", "e", by, CUTS), 180),
        (lambda by: LogRank("t", "e", by, CUTS), 80),
    ],
)
def test_two_hundred_groups_are_expected_to_take_what_they_take(query: Any, taken: float) -> None:
    assert expected_ms(query("few")) < 40
    assert taken < expected_ms(query("many")) < 4 * taken


def test_strata_count_as_groups_do() -> None:
    plain = expected_ms(LogRank("t", "e", "few", CUTS))
    assert expected_ms(LogRank("t", "e", "few", CUTS, strata="many")) > 5 * plain


def test_a_number_has_no_levels_to_compare() -> None:
    with pytest.raises(InvalidQuery, match=r"^x has no public levels to compare"):
        plan(FACTS, LogRank("t", "e", "few", CUTS, strata="x"), Privacy(1.0, 1e-6))
