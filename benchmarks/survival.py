# SPDX-License-Identifier: Apache-2.0
"""Survival curves at few cuts on real tables: do their intervals hold Kaplan–Meier's value of the
whole table?

Tables: colon (deaths), flchain, gbsg and rotterdam of R's package survival, which Rscript writes
(Debian: r-cran-survival), and rossi of lifelines where that is installed (it wants an older pandas
than the client's tests). Each is sampled with replacement; a sample is asked for the curve at the
given cuts, without a profile. `SURVIVAL_SAMPLES` (150) samples a table and ε.
"""

import importlib
import importlib.util
import io
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.fitting.normal import half_width
from reticent_server.kinds.survival_curve.kind import KIND, SurvivalCurve
from support.kinds.recipes import block_of, facts_of, outcome
from support.tables.follow_up import kaplan_meier

EPSILONS = (0.5, 1.0, 4.0)
DELTA = 1e-6
YEAR = 365.0


@dataclass(frozen=True)
class FollowUpTable:
    name: str
    time: np.ndarray
    event: np.ndarray
    upper: int
    cuts: tuple[float, ...]


def tables() -> Iterator[FollowUpTable]:
    """Those that can be had here; what cannot is said."""
    if importlib.util.find_spec("lifelines") is None:
        print("!! rossi is left out: lifelines is not installed")
    else:
        rossi = importlib.import_module("lifelines.datasets").load_rossi()
        yield FollowUpTable("rossi", rossi.week, rossi.arrest, 60, (13.0, 26.0, 39.0, 52.0))
    if shutil.which("Rscript") is None:
        print("!! the tables of R's survival are left out: there is no Rscript")
        return
    gbsg = _of_r("survival::gbsg")
    yield FollowUpTable(
        "gbsg", gbsg.rfstime, gbsg.status, 3000, tuple(YEAR * k for k in range(1, 6))
    )
    colon = _of_r("subset(survival::colon, etype == 2)")
    yield FollowUpTable(
        "colon", colon.time, colon.status, 4000, tuple(YEAR * k for k in range(1, 7))
    )
    rotterdam = _of_r("survival::rotterdam")
    cuts = (YEAR, 3 * YEAR, 5 * YEAR, 10 * YEAR)
    yield FollowUpTable("rotterdam", rotterdam.dtime, rotterdam.death, 8000, cuts)
    chain = _of_r("survival::flchain")
    yield FollowUpTable(
        "flchain", chain.futime, chain.death, 6000, (1000.0, 2000.0, 3000.0, 4000.0)
    )


def _of_r(expression: str) -> pd.DataFrame:
    command = ["Rscript", "-e", f"write.csv({expression}, stdout(), row.names = FALSE)"]
    return pd.read_csv(
        io.StringIO(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    )


def main() -> None:
    samples = int(os.environ.get("SURVIVAL_SAMPLES", "150"))
    rows = [_row(table, epsilon, samples) for table in tables() for epsilon in EPSILONS]
    header = (
        "table",
        "n",
        "ε",
        "cuts",
        "all held",
        "least held",
        "worst bias / SE",
        "restricted mean",
        "least of its cuts",
    )
    for line in (header, ("---",) * len(header), *rows):
        print("| " + " | ".join(line) + " |")


def _row(table: FollowUpTable, epsilon: float, samples: int) -> tuple[str, ...]:
    n = len(table.time)
    time, event = (np.asarray(v, dtype=np.float64) for v in (table.time, table.event))
    truth = kaplan_meier(time, event, np.array(table.cuts))
    areas = np.array([_area(time, event, cut) for cut in table.cuts])
    columns = (
        Column("t", ColumnKind.INTEGER, 0, table.upper),
        Column("e", ColumnKind.BOOLEAN, 0, 1),
    )
    offer = PrivacyCost(0, 0, rho_units(epsilon, DELTA))
    planned = KIND.plan(facts_of(n, columns, 1), SurvivalCurve("t", "e", None, table.cuts), offer)
    rng, held, bias, means = np.random.default_rng(7), [], [], []
    for _ in range(samples):
        i = rng.integers(n, size=n)
        mask = {"m": np.zeros(n, dtype=bool)}
        found = outcome(planned, block_of(mask, t=time[i], e=event[i], m=np.zeros(n)))
        if len(found.times) < len(truth):
            continue  # the last time is below the noise
        low, high = np.array(found.confidence_intervals).T
        held.append((low <= truth) & (truth <= high))
        bias.append((np.array(found.survival) - truth) / np.array(found.standard_errors))
        off = np.abs(np.array(found.restricted_means) - areas)
        means.append(off <= half_width(1.0) * np.array(found.restricted_mean_standard_errors))
    by_cut = np.mean(held, axis=0)
    worst = float(np.abs(np.mean(bias, axis=0)).max())
    of_means = np.mean(means, axis=0)
    shown = (by_cut.mean(), by_cut.min(), worst, of_means[-1], of_means.min())
    return (table.name, f"{n:,}", f"{epsilon:g}", str(len(truth)), *(f"{v:.3f}" for v in shown))


def _area(time: np.ndarray, event: np.ndarray, until: float) -> float:
    """Under the steps of Kaplan and Meier's curve, up to `until`."""
    falls = np.unique(time[(event == 1) & (time < until)])
    heights = np.append(1.0, kaplan_meier(time, event, falls))
    return float(np.diff(np.concatenate([[0.0], falls, [until]])) @ heights)
