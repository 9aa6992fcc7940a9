# SPDX-License-Identifier: Apache-2.0
"""Negative binomial tables with weights, and plans of fits that estimate the dispersion."""

from dataclasses import replace
from typing import Any

import numpy as np

from reticent_server.domain.cost import PrivacyCost
from reticent_server.kinds.glm.estimated_dispersion import DispersedPlan
from reticent_server.kinds.glm.kind import KIND
from reticent_server.kinds.glm.query import Glm
from support.fits.glm import glm_table, response, slopes
from support.fits.regressions import Table, facts_of, numeric, profile_of
from support.seeds import seeded

NB, TRUTH = "negative_binomial", np.array([0.5, 0.4, 0.4, 0.4])
COLUMNS = [*slopes(3), response(NB), numeric("a", 0.0, 2.0)]


def made_up(n: int, rng: np.random.Generator | None = None, alpha: float = 0.5) -> Table:
    """Three regressors, counts with mean 2 or so, and weights uniform on [0, 2]."""
    rng = rng or seeded(3)
    table = glm_table(NB, n, rng, phi=alpha)
    return {**table, "a": rng.uniform(0, 2, n)}


def estimated(table: Table, rho: int, **fields: Any) -> DispersedPlan:
    """A plan on a public profile of the table."""
    facts = facts_of(len(table["y"]), COLUMNS, profile_of(table, COLUMNS))
    query = replace(Glm("y ~ x0 + x1 + x2", NB), **fields)
    plan = KIND.plan(facts, query, PrivacyCost(10**9, 10**3, rho))
    assert isinstance(plan, DispersedPlan)
    return plan
