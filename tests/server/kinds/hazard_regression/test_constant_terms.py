# SPDX-License-Identifier: Apache-2.0
"""Terms that are the same for all records are declined before anything is charged."""

from typing import Any

import numpy as np
import pytest

from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.hazard_regression.kind import KIND, HazardRegression
from support.fits.hazards import COLUMNS, FORMULA, GROUP, persons
from support.fits.regressions import facts_of, profile_of
from support.seeds import seeded
from support.tables.follow_up import offer

N = 2000
SAME = Column("c", ColumnKind.NUMERIC, 1, 10)
FLAG = Column("z", ColumnKind.BOOLEAN, 0, 1)


def plan(formula: str, flagged: int = 0, where: str | None = None, profile: bool = True) -> Any:
    """Of persons of whom so many have the flag, and the group c; all have c = 3."""
    data = persons(seeded(41), N, strata=2)
    few = np.arange(N) < flagged
    data |= {"c": np.full(N, 3.0), "z": few * 1.0, "g": np.where(few, 2.0, data["g"])}
    known = [*COLUMNS, SAME, FLAG]
    facts = facts_of(N, [*known, GROUP], profile_of(data, known, {"g": 3}) if profile else None)
    return KIND.plan(facts, HazardRegression(formula, where=where), offer(2.0))


@pytest.mark.parametrize(
    ("added", "flagged", "where", "named"),
    [
        (" + c", 0, None, "c is the same"),
        (" + log(c) + z", 0, None, r"log\(c\), z is the same"),
        (" + z", 19, None, "z is the same"),
        (" + z", N - 19, None, "z is the same"),
        (" + C(g)", 8, None, r"C\(g\)\[c\] is the same"),
        ("", 0, "arm == 1", "arm is the same"),
    ],
)
def test_a_constant_term_is_named(added: str, flagged: int, where: str | None, named: str) -> None:
    with pytest.raises(InvalidQuery, match=f"condition {named}"):
        plan(FORMULA + added, flagged, where)


def test_a_rare_level_that_may_be_told_is_asked() -> None:
    assert plan(FORMULA + " + z + C(g)", 25).rho > 0
    assert plan(FORMULA, where="arm == 1 or dose < 1").rho > 0


def test_without_a_profile_nobody_knows() -> None:
    assert plan(FORMULA + " + c + z", profile=False).rho > 0
