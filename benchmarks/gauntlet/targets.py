# SPDX-License-Identifier: Apache-2.0
"""What replies are compared with: the model on the whole table, without noise where there is code
for that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.accuracy import BenchTable
from benchmarks.gauntlet.replies import estimates
from reticent_server.domain.query import Query
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.kinds.shared.target import Target as NoiseFree

LEAST_WHOLE = 20_000  # records of a whole table, repeated: its profile is then near the samples'
# of a target with noise: an eightieth of that at 1, and a mean of three
LARGE_EPSILON, FITS = 80.0, 3
PLAN_EPSILON = 1.0  # of the plan whose equations are solved: the estimand does not depend on it


@dataclass(frozen=True, slots=True, eq=False)
class WholeTableTarget:
    """coefficients (q,) of the whole table, NaN where it does not identify them, and sampling
    standard errors (q,) of n of its records.
    """

    coefficients: FloatArray
    standard_errors: FloatArray


Solve = Callable[[Any, Block], NoiseFree]


def noise_free(table: BenchTable, query: Query, n: int, solve: Solve) -> WholeTableTarget:
    """The equations of the plan, solved on all records; NaN errors of a coefficient that they do
    not have.
    """
    with np.errstate(invalid="ignore"):
        found = solve(table.plan(query, PLAN_EPSILON).planned, table.block())
    return WholeTableTarget(found.coefficients, found.standard_errors * np.sqrt(table.n / n))


def almost_noise_free(table: BenchTable, query: Query, n: int) -> WholeTableTarget:
    """The mean of three releases at a very large ε; NaN where one has no standard error."""
    plan = table.plan(query, LARGE_EPSILON)
    found = [estimates(table.release(plan)) for _ in range(FITS)]
    sampling = [np.sqrt(np.maximum(e.errors**2 - e.privacy**2, 0)) for e in found]
    errors = np.median(sampling, axis=0) * np.sqrt(table.n / n)
    return WholeTableTarget(np.mean([e.coefficients for e in found], axis=0), errors)
