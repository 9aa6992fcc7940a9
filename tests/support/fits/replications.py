# SPDX-License-Identifier: Apache-2.0
"""Replications of a private regression through planning, the engine and the mechanisms."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.stats import chi2

from reticent_server.domain.facts import Profile
from reticent_server.domain.private import Private
from reticent_server.domain.query import Privacy
from reticent_server.domain.reservation import Reservation
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import FloatArray
from reticent_server.engine.local import LocalEngine
from reticent_server.kinds.profile.kind import ProfileQuery
from reticent_server.kinds.profile.plan import profile_of
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.pipeline import planning
from support.fits.regressions import Table, facts_of

TABLES_OF_A_PROFILE = 50
LEVEL = 0.05


class MemoryTable:
    """Reader, ledger and engine of one table; without a profile it releases one of its own."""

    def __init__(
        self, arrays: Table, columns: Sequence[Column], profile: Profile | None = None
    ) -> None:
        self.arrays, self.n = arrays, len(arrays["y"])
        self.facts = facts_of(self.n, list(columns), None)
        self.engine = LocalEngine(
            lambda _: self, self, cache_bytes=1 << 26, threads=1, block_rows=8192
        )
        found = profile or profile_of(self.release(self.plan(ProfileQuery(), 1.0)), "rel")
        self.facts = replace(self.facts, profile=found)

    def batches(self, columns: Sequence[str]) -> Any:
        yield Private(pa.RecordBatch.from_pydict({k: pa.array(self.arrays[k]) for k in columns}))

    def confirm(self, reservation: Reservation) -> bool:
        return True

    def plan(self, query: Any, epsilon: float) -> Any:
        return planning.plan(self.facts, query, Privacy(epsilon, 1e-6))

    def release(self, plan: Any) -> dict[str, Any]:
        reply = self.engine.execute(plan, Reservation("rel", "version", plan.cost, ""))
        assert reply.status == "reply"
        assert reply.result is not None
        return reply.result


@dataclass(frozen=True, slots=True, eq=False)
class Replications:
    """Of k fits with q coefficients: covered (k, q), NaN where there is no interval; wald (k,) the
    p-values of "all slopes are the true ones", NaN where a slope has no interval, so that there is
    no joint test; errors and standard errors (k, q); ratio: the
    largest forecast ratio of a coefficient's privacy and sampling standard errors.
    """

    covered: FloatArray
    wald: FloatArray
    errors: FloatArray
    standard_errors: FloatArray
    ratio: float

    @property
    def usable(self) -> bool:
        """Whether the plan forecasts privacy standard errors below 3 sampling standard errors."""
        return self.ratio < 3

    @property
    def coverage(self) -> float:
        """Of the intervals that were given; 1 where none was."""
        given = self.covered[self._given]
        return float(given.mean()) if given.size else 1.0

    @property
    def bare_coverage(self) -> float:
        """Of estimates ± 1.96 standard errors, whether flagged or not."""
        return float(np.mean(np.abs(self.errors) <= 1.96 * self.standard_errors))

    @property
    def _given(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.covered)

    @property
    def coverage_error(self) -> float:
        """The simulation's standard error of the coverage; coefficients of a fit go together."""
        fits = self.covered[self._given.any(axis=1)]
        share = np.nanmean(fits, axis=1) if len(fits) else np.zeros(1)
        return float(max(share.std(), 0.1) / np.sqrt(max(len(share), 1)))

    @property
    def level(self) -> float:
        """Of the joint tests that were given; the nominal one where there was none."""
        given = self.wald[~np.isnan(self.wald)]
        return float(np.mean(given < LEVEL)) if given.size else LEVEL

    @property
    def level_error(self) -> float:
        given = int(np.count_nonzero(~np.isnan(self.wald)))
        return float(np.sqrt(LEVEL * (1 - LEVEL) / max(given, 1)))


def replicate(
    make: Callable[[], tuple[Table, Sequence[Column]]],
    truth: FloatArray,
    epsilon: float,
    count: int,
) -> Replications:
    """`count` fits of new tables of make() on all columns, at δ = 10⁻⁶.

    A profile is released for each fiftieth table, and taken for the next ones too, which come from
    the same distribution.
    """
    rows, profile, plan = [], None, None
    for k in range(count):
        table, columns = make()
        memory = MemoryTable(table, columns, profile if k % TABLES_OF_A_PROFILE else None)
        profile = memory.facts.profile
        formula = "y ~ " + " + ".join(c.name for c in columns if c.name != "y")
        plan = memory.plan(LinearRegression(formula), epsilon)
        rows.append(one_fit(memory.release(plan), truth))
        memory.engine.close()
    assert plan is not None
    covered, wald, errors, deviations = (np.array(x) for x in zip(*rows, strict=True))
    return Replications(
        covered,
        wald,
        errors,
        deviations,
        plan.planned.forecast_fit.worst,
    )


def one_fit(result: dict[str, Any], truth: FloatArray) -> tuple[Any, ...]:
    """Whether each interval has the truth, the Wald p-value, errors, standard errors."""
    low, high = np.array(result["confidence_intervals"], dtype=float).T
    covered = np.where(result["estimable"], (low <= truth) & (truth <= high), np.nan)
    errors = np.array(result["coefficients"]) - truth
    slopes, C = errors[1:], np.array(result["covariance"])[1:, 1:]
    statistic = float(slopes @ np.linalg.solve(C, slopes))
    p_value = float(chi2.sf(statistic, len(slopes))) if np.all(result["estimable"][1:]) else np.nan
    return covered, p_value, errors, np.array(result["standard_errors"])
