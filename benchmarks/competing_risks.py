# SPDX-License-Identifier: Apache-2.0
"""Competing risks and compared groups on real tables: do intervals hold Aalen and Johansen's value
of the whole table, and do tests keep their level?

Tables: mgus2, pbc, transplant and colon (deaths) of R's package survival and Melanoma of MASS,
which Rscript writes (Debian: r-cran-survival, r-cran-mass). Each is sampled with replacement; the
second half of the columns has groups that are drawn at random within strata, so that a test that
rejects does so by error. `COMPETING_SAMPLES` (200) samples a table and ε.
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.survival import _of_r
from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.fitting.normal import half_width
from reticent_server.kinds.cumulative_incidence.kind import KIND, CumulativeIncidence
from reticent_server.kinds.log_rank.kind import KIND as LOG_RANK
from reticent_server.kinds.log_rank.kind import LogRank
from support.kinds.recipes import block_of, facts_of, outcome

EPSILONS = (0.5, 1.0, 4.0)
DELTA = 1e-6
LEVEL = 0.05
MGUS2 = """with(survival::mgus2, data.frame(time = ifelse(pstat == 0, futime, ptime),
cause = ifelse(pstat == 0, 2 * death, 1)))"""
TRANSPLANT = """with(subset(survival::transplant, futime > 0),
  data.frame(time = futime, cause = as.integer(event) - 1))"""
MELANOMA = """with(MASS::Melanoma, data.frame(time, cause = c(1, 0, 2)[status]))"""
COLON = "with(subset(survival::colon, etype == 2), data.frame(time, status, node4))"


@dataclass(frozen=True)
class CausesTable:
    """cause: 0 where no event was seen."""

    name: str
    frame: Any
    upper: int
    cuts: tuple[float, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        levels = tuple(
            f"cause {k}" if k else "none" for k in range(int(self.frame.cause.max()) + 1)
        )
        return (
            Column("t", ColumnKind.INTEGER, 0, self.upper),
            Column("c", ColumnKind.CATEGORICAL, 0, len(levels) - 1, levels),
            Column("g", ColumnKind.BOOLEAN, 0, 1),
        )


def tables() -> Iterator[CausesTable]:
    yield CausesTable("mgus2", _of_r(MGUS2), 430, (60.0, 120.0, 180.0, 240.0))
    yield CausesTable(
        "pbc",
        _of_r("with(survival::pbc, data.frame(time, cause = status))"),
        5000,
        (730.0, 1460.0, 2190.0, 2920.0),
    )
    yield CausesTable("transplant", _of_r(TRANSPLANT), 2100, (90.0, 180.0, 365.0, 730.0))
    yield CausesTable("Melanoma", _of_r(MELANOMA), 5600, (730.0, 1460.0, 2190.0, 2920.0))


def main() -> None:
    if shutil.which("Rscript") is None:
        print("!! left out: there is no Rscript")
        return
    samples = int(os.environ.get("COMPETING_SAMPLES", "200"))
    _shown(
        (
            "table",
            "n",
            "ε",
            "causes",
            "incidence",
            "least cut",
            "times lost",
            "privacy SE / SE",
            "times given",
            "level of Gray's test",
        ),
        [_incidence(table, epsilon, samples) for table in tables() for epsilon in EPSILONS],
    )
    _shown(
        ("table", "n", "ε", "plain", "strata", "strata, trend", "strata, early", "strata, late"),
        [_log_rank(epsilon, samples) for epsilon in EPSILONS],
    )


def _shown(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    for line in (header, ("---",) * len(header), *rows):
        print("| " + " | ".join(line) + " |", flush=True)


def _offer(epsilon: float) -> PrivacyCost:
    return PrivacyCost(0, 0, rho_units(epsilon, DELTA))


def _incidence(table: CausesTable, epsilon: float, samples: int) -> tuple[str, ...]:
    n, K, J = len(table.frame), int(table.frame.cause.max()), len(table.cuts)
    time, cause = (np.asarray(v, dtype=np.float64) for v in (table.frame.time, table.frame.cause))
    facts = facts_of(n, table.columns)
    query = CumulativeIncidence("t", "c", None, table.cuts)
    exact = KIND.plan(facts, query, PrivacyCost(0, 0, 10**22))
    truth = outcome(exact, block_of({}, t=time, c=cause, g=np.zeros(n))).curves
    curves = KIND.plan(facts, query, _offer(epsilon))
    tests = KIND.plan(facts, CumulativeIncidence("t", "c", "g", table.cuts), _offer(epsilon))
    rng, rejected, shares = np.random.default_rng(7), [], []
    held, lost = np.full((2, samples, K, J), np.nan)
    for s in range(samples):
        i = rng.integers(n, size=n)
        data = block_of({}, t=time[i], c=cause[i], g=rng.integers(2, size=n).astype(np.float64))
        for k, (found, true) in enumerate(zip(outcome(curves, data).curves, truth, strict=True)):
            at = len(found.times)
            low, high = np.array(found.confidence_intervals).reshape(-1, 2).T
            held[s, k, :at] = (low <= true.incidence[:at]) & (true.incidence[:at] <= high)
            off = np.abs(np.array(found.times_lost) - true.times_lost[:at])
            lost[s, k, :at] = off <= half_width(1.0) * np.array(found.times_lost_standard_errors)
            shares += (np.array(found.privacy_standard_errors) / found.standard_errors).tolist()
        rejected += [test.p_value < LEVEL for test in outcome(tests, data).tests]
    enough = np.isfinite(held).sum(axis=0) >= samples / 2
    by_cut = np.nanmean(held, axis=0)[enough]
    numbers = (
        np.nanmean(held),
        by_cut.min(initial=1.0),
        np.nanmean(lost),
        np.mean(shares),
        np.isfinite(held).mean(),
    )
    level = f"{np.mean(rejected):.3f} of {len(rejected)}" if rejected else "not given"
    return (table.name, f"{n:,}", f"{epsilon:g}", str(K), *(f"{v:.3f}" for v in numbers), level)


CHOICES: tuple[dict[str, Any], ...] = (
    {},
    {"strata": "s"},
    {"strata": "s", "trend": True},
    {"strata": "s", "emphasis": (1.0, 0.0)},
    {"strata": "s", "emphasis": (0.0, 1.0)},
)


def _log_rank(epsilon: float, samples: int) -> tuple[str, ...]:
    """Three groups that are drawn at random, with shares that depend on the stratum; the plain test
    has groups of one size in all strata."""
    frame = _of_r(COLON)
    n = len(frame)
    time, event, node = (
        np.asarray(frame[name], dtype=np.float64) for name in ("time", "status", "node4")
    )
    facts = facts_of(n, (
        Column("t", ColumnKind.INTEGER, 0, 3400),
        Column("e", ColumnKind.BOOLEAN, 0, 1),
        Column("g", ColumnKind.CATEGORICAL, 0, 2, ("a", "b", "c")),
        Column("s", ColumnKind.BOOLEAN, 0, 1),
    ))  # fmt: skip
    plans = [
        LOG_RANK.plan(facts, LogRank("t", "e", "g", **choice), _offer(epsilon))
        for choice in CHOICES
    ]
    rng, rejected = np.random.default_rng(8), []
    for _ in range(samples):
        i = rng.integers(n, size=n)
        of_strata = np.where(node[i, None] == 1, [0.2, 0.5], [0.5, 0.8])
        u = rng.random(n)
        groups = [
            (u[:, None] > cut).sum(axis=1).astype(np.float64)
            for cut in (np.array([[1 / 3, 2 / 3]]), of_strata)
        ]
        data = [block_of({}, t=time[i], e=event[i], g=g, s=node[i]) for g in groups]
        rejected.append(
            [outcome(plan, data[k > 0]).p_value < LEVEL for k, plan in enumerate(plans)]
        )
    return ("colon", f"{n:,}", f"{epsilon:g}", *(f"{v:.3f}" for v in np.mean(rejected, axis=0)))
