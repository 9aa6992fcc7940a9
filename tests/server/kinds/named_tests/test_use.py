# SPDX-License-Identifier: Apache-2.0
"""Which records the named tests are about: those that the condition names, of the groups that are
asked for.
"""

from typing import Any

import numpy as np
import pytest

from reticent_server.kinds import registry
from reticent_server.kinds.anova.kind import Anova
from reticent_server.kinds.correlation.kind import Correlation
from reticent_server.kinds.kruskal.kind import Kruskal
from reticent_server.kinds.ks_test.kind import KsTest
from reticent_server.kinds.mann_whitney.kind import MannWhitney
from reticent_server.kinds.proportion_test.kind import ProportionTest
from reticent_server.kinds.t_test.kind import TTest
from support.kinds.named_tests import offer, people, people_facts
from support.kinds.recipes import block_of, outcome

N = 4000
QUIET = offer(10**6, 100)
QUERIES = {
    "t_test": lambda where: TTest("y", "g", ("a", "b"), where=where),
    "t_test, paired": lambda where: TTest(columns=("y", "m"), paired=True, where=where),
    "anova": lambda where: Anova("y", "g", where=where),
    "mann_whitney": lambda where: MannWhitney("y", "g", ("a", "b"), where=where),
    "kruskal": lambda where: Kruskal("y", "g", where=where),
    "proportion_test": lambda where: ProportionTest("b", "g", ("a", "b"), where=where),
    "pearson": lambda where: Correlation(("y", "m"), where=where),
    "spearman": lambda where: Correlation(("y", "m"), "spearman", where=where),
    "kendall": lambda where: Correlation(("y", "m"), "kendall", where=where),
    "ks_test": lambda where: KsTest("y", "g", ("a", "b"), where=where),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_condition_leaves_records_out(name: str) -> None:
    """Records with x ≤ 0 have quite another y: whoever counts them replies something else."""
    table = people(N)
    table["y"] = np.where(table["x"] > 0, table["y"], 8 * (table["g"] == 0) - 4 * table["m"])
    table["b"] = np.where(table["x"] > 0, table["b"], table["g"] == 0)
    kept = {k: v[table["x"] > 0] for k, v in table.items()}
    public = people_facts(N)
    found, alone = (
        outcome(registry.plan(public, QUERIES[name](where), QUIET), block_of(missing_of(t), **t))
        for where, t in (("x > 0", table), (None, kept))
    )
    assert found.effect == pytest.approx(alone.effect, abs=0.02)
    assert found.p_value == pytest.approx(alone.p_value, abs=0.05)


def missing_of(table: Any) -> dict[Any, Any]:
    return {"m": np.zeros(len(table["y"]), dtype=bool)}


def test_missing_cells_leave_records_out() -> None:
    table = people(N)
    absent = np.arange(N) % 2 == 0
    table["m"] = np.where(absent, 0.0, table["m"])
    plan = registry.plan(people_facts(N), Correlation(("y", "m")), QUIET)
    found = outcome(plan, block_of({"m": absent}, **table))
    assert found.number == pytest.approx(N / 2, abs=10)
