# SPDX-License-Identifier: Apache-2.0
"""Coverage and width of weighted means: `python -m benchmarks.weighted_means CSV`.

CSV: cps_asec_2024_wages.csv, 54,875 wage earners of the Current Population Survey with their final
weights, declared up to the largest. Bootstrap samples; the target is the weighted mean of the whole
table. Width: over that of the linearised error (svymean of R's survey) on the same sample. And
simulated tables with weights from .5 to 4.5, declared up to 10, that go with the column.
"""

import sys
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.named_tests import offer
from reticent_server.kinds import registry
from reticent_server.kinds.mean.kind import Mean
from support.fits.regressions import drive, whole
from support.kinds.recipes import facts_of, numeric

REPS = 100  # a coverage of .95 has the standard error .02
BOUNDS = {"log_wage": (0.0, 15.0), "female": (0.0, 1.0), "educ_years": (0.0, 21.0)}


def linearised(y: Any, w: Any) -> tuple[float, float]:
    m = float(w @ y / w.sum())
    return m, float(np.sqrt(np.sum((w * (y - m)) ** 2)) / w.sum())


def released(y: Any, w: Any, ends: tuple[float, float], most: float, epsilon: float) -> Any:
    facts = facts_of(len(y), (numeric("y", *ends), numeric("w", 0.0, most)))
    plan = registry.plan(facts, Mean("y", weights="w"), offer(epsilon))
    return drive(plan.run(), whole({"y": y, "w": w})).result


def measured(
    name: str, samples: list[Any], truth: float, ends: tuple[float, float], most: float
) -> None:
    """Prints a line for each ε."""
    for epsilon in (0.1, 1.0):
        hits, widths = [], []
        for y, w in samples:
            low, high = released(y, w, ends, most, epsilon)["confidence_interval"]
            error = linearised(y, w)[1]
            hits.append(low <= truth <= high)
            widths.append((high - low) / (2 * 1.96 * error))
        print(
            f"{name} n = {len(samples[0][0]):,} epsilon {epsilon:g}: covered {np.mean(hits):.2f},",
            f"width {np.median(widths):.2f}",
        )


def main() -> None:
    rng, frame = np.random.default_rng(1), pd.read_csv(sys.argv[1])
    most = float(np.ceil(frame["A_FNLWGT"].max() / 1000) * 1000)
    print(
        "largest weight",
        frame["A_FNLWGT"].max(),
        "mean",
        frame["A_FNLWGT"].mean(),
        "declared",
        most,
    )
    for name, ends in BOUNDS.items():
        y = np.clip(frame[name].to_numpy(float), *ends)
        w = frame["A_FNLWGT"].to_numpy(float)
        truth = linearised(y, w)[0]
        for n in (2_000, 20_000):
            samples = [(y[i], w[i]) for i in (rng.integers(0, len(y), n) for _ in range(REPS))]
            measured(name, samples, truth, ends, most)
    for n in (5_000, 20_000):
        samples = []
        for _ in range(REPS):
            w = rng.uniform(0.5, 4.5, n)
            samples.append((np.clip(w + rng.normal(size=n), -10, 10), w))
        truth = (4.5**3 - 0.5**3) / 3 / ((4.5**2 - 0.5**2) / 2)
        measured("simulated", samples, truth, (-10.0, 10.0), 10.0)


if __name__ == "__main__":
    main()
