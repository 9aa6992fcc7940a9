# SPDX-License-Identifier: Apache-2.0
"""Table 1 by group on real tables: do intervals of standardised differences hold those of the whole
table, and do tests keep their level?

Tables of R's package survival, which Rscript writes: rotterdam (2,982 patients by hormonal
treatment) and flchain (7,874 persons by sex). Samples of the table's size are drawn with
replacement; `level` are samples with the group drawn anew, which no column depends on. Each
description is of all columns, with a profile.

    python -m benchmarks.table_one       TABLE_SAMPLES (100), TABLE_EPSILONS (1,4)

given: share of samples with an interval. covered: share of intervals that hold the whole table's
difference; width: median, over that of the same description without noise; smd: median distance
from the whole table's, with noise and without; level: share of p < .05 where nothing depends on the
group; power: where everything does, with noise (without).
"""

import os
from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from benchmarks.structural import of_r
from reticent.results.group_comparisons import GroupComparison, comparison
from reticent_server.domain.results import result_json
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import FloatArray
from reticent_server.kinds.describe.kind import KIND, Describe
from support.fits.regressions import drive
from support.kinds.studies import NO_NOISE, boolean, factor, facts_of, numeric, offer, whole

SAMPLES = int(os.environ.get("TABLE_SAMPLES", "100"))
EPSILONS = tuple(float(e) for e in os.environ.get("TABLE_EPSILONS", "1,4").split(","))
SEED = 7_700
TABLES: Mapping[str, tuple[str, tuple[Column, ...]]] = {
    "rotterdam": (
        ("with(survival::rotterdam, data.frame(group = hormon, age, meno, size = "
            "as.integer(size) - 1, grade = grade - 2, nodes, chemo))"),
        (
            boolean("group"), numeric("age", 20, 100), boolean("meno"), factor("size", "abc"),
            boolean("grade"),
            numeric("nodes", 0, 40), boolean("chemo"),
        ),
    ),
    "flchain": (
        ("with(survival::flchain, data.frame(group = 1 * (sex == 'M'), age, kappa = "
            "pmin(kappa, 15), lambda = pmin(lambda, 15), flc = flc.grp - 1, mgus, death))"),
        (
            boolean("group"), numeric("age", 40, 110), numeric("kappa", 0, 15),
            numeric("lambda", 0, 15),
            factor("flc", tuple("abcdefghij")), boolean("mgus"), boolean("death"),
        ),
    ),
}  # fmt: skip


def described(
    table: Mapping[str, FloatArray], columns: tuple[Column, ...], epsilon: float
) -> list[GroupComparison]:
    names = tuple(c.name for c in columns[1:])
    plan = KIND.plan(facts_of(table, columns), Describe(columns=names, by="group"), offer(epsilon))
    result = result_json(drive(plan.run(), whole(table)).result)
    return [comparison(column) for column in result["columns"]]


def samples(frame: pd.DataFrame, *, null: bool) -> Iterator[dict[str, FloatArray]]:
    for seed in range(SAMPLES):
        rng = np.random.default_rng(SEED + seed)
        rows = frame.to_numpy(float)[rng.integers(0, len(frame), len(frame))]
        table = {c: rows[:, k].copy() for k, c in enumerate(frame.columns)}
        if null:
            table["group"] = (rng.random(len(frame)) < frame["group"].mean()) * 1.0
        yield table


def compare(name: str, epsilon: float) -> None:
    expression, columns = TABLES[name]
    frame = of_r(expression)
    truth = described({c: frame[c].to_numpy(float) for c in frame}, columns, NO_NOISE)
    ours = [described(t, columns, epsilon) for t in samples(frame, null=False)]
    plain = [described(t, columns, NO_NOISE) for t in samples(frame, null=False)]
    level = [described(t, columns, epsilon) for t in samples(frame, null=True)]
    for k, true in enumerate(truth):
        ends = np.array([s[k].difference.conf_int() for s in ours])
        given = np.isfinite(ends[:, 0])
        hit = (ends[:, 0] <= true.difference.value) & (true.difference.value <= ends[:, 1])
        held = np.mean(hit[given]) if given.any() else np.nan
        width = np.nanmedian([s[k].difference.bse for s in ours]) / np.nanmedian(
            [s[k].difference.bse for s in plain]
        )
        away, before = (
            np.nanmedian([abs(s[k].difference.value - true.difference.value) for s in each])
            for each in (ours, plain)
        )
        rejected = [np.mean([s[k].pvalue < 0.05 for s in each]) for each in (level, ours, plain)]
        print(
            f"{name:10} {epsilon:3g} {true.column:8} smd {true.difference.value:6.3f} given "
            f"{given.mean():.2f} covered {held:.2f} "
            f"width {width:.2f} off {away:.3f} ({before:.3f}) level {rejected[0]:.2f} power "
            f"{rejected[1]:.2f} ({rejected[2]:.2f})",
            flush=True,
        )


def main() -> None:
    for name in TABLES:
        for epsilon in EPSILONS:
            compare(name, epsilon)


if __name__ == "__main__":
    main()
