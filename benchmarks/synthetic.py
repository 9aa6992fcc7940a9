# SPDX-License-Identifier: Apache-2.0
"""Coverage, width and utility of tables of cliques: `python -m benchmarks.synthetic [DIR [reps]]`,
and `… DIR utility` with the extra `synthetic` of the client.

AIM_PYTHON: a Python with `opendp[mbi]` and `pandas`, whose own AIM then stands beside
(benchmarks/synthetic_aim.py), at the same ρ for one record more or less; here one is replaced,
which takes √2 times the noise.

DIR (GAUNTLET_DATA, as of the gauntlet) holds adult.data (UCI Adult, 32,561 persons) and
cps_asec_2024_wages.csv (CPS ASEC 2024); without them nothing is measured, and that is said. Of
each, bootstrap samples of the sizes below, with a profile of the table's own quantiles; planned and
released by the server's own code, read by the client's. Target: the fit or share of the whole
table, binned alike. Width: over a fit of the sample's cells without noise. Utility: mean over all
pairs of columns of the L1 distance between shares of the released, or of synthetic records, and the
sample's (0 to 2).
"""

import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.gauntlet.tables import DATA
from benchmarks.named_tests import answer, offer
from reticent._errors import MissingDependency
from reticent._joint import joint_records
from reticent.kinds.synthetic import SyntheticTables
from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.facts import PROFILE_PROBABILITIES, ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.domain.steps import Block, Released
from reticent_server.kinds.synthetic.kind import KIND, Synthetic

FILES = ("adult.data", "cps_asec_2024_wages.csv")
REPS = 200  # a coverage of .95 has the standard error .015
SIZES = (5000, 20_000)
EPSILONS = (1.0, 3.0)


@dataclass(frozen=True, slots=True)
class CliqueCase:
    """A table's clique, a formula inside of it (a logit or least squares), and the shares that are
    looked at.
    """

    table: str
    clique: tuple[str, ...]
    model: str
    formula: str
    crosstab: tuple[str, ...]


CASES = (
    CliqueCase(
        "adult", ("income", "age", "sex"), "logit", "income ~ age + C(sex)", ("income", "age")
    ),
    CliqueCase(
        "adult", ("income", "sex", "hours"), "logit", "income ~ hours + C(sex)", ("income", "sex")
    ),
    CliqueCase("adult", ("income", "educ"), "logit", "income ~ educ", ("income", "educ")),
    CliqueCase(
        "adult",
        ("income", "married", "educ"),
        "logit",
        "income ~ educ + C(married)",
        ("income", "married"),
    ),
    CliqueCase(
        "cps",
        ("log_wage", "educ_years", "female"),
        "ols",
        "log_wage ~ educ_years + C(female)",
        ("educ_years", "female"),
    ),
    CliqueCase(
        "cps",
        ("high_wage", "experience", "female"),
        "logit",
        "high_wage ~ experience + C(female)",
        ("high_wage", "experience"),
    ),
    CliqueCase(
        "cps",
        ("high_wage", "educ_years", "female"),
        "logit",
        "high_wage ~ educ_years + C(female)",
        ("high_wage", "educ_years"),
    ),
)
_ADULT = (
    "age workclass weight education educ marital occupation relationship race sex gain loss hours "
    "country income"
)


def levels(values: Any) -> tuple[Any, tuple[str, ...]]:
    """Codes (n,), and the levels' names."""
    found = pd.Categorical(values)
    return found.codes.astype(float), tuple(map(str, found.categories))


def adult(folder: Path) -> tuple[pd.DataFrame, tuple[Column, ...]]:
    """Adult's columns as they are stored."""
    raw = pd.read_csv(folder / "adult.data", header=0, names=_ADULT.split(), skipinitialspace=True)
    raw["married"] = raw.marital.str.startswith("Married").map({True: "yes", False: "no"})
    stored, columns = {}, []
    for name in ("sex", "race", "married", "relationship", "workclass", "income"):
        stored[name], found = levels(raw[name])
        columns.append(Column(name, ColumnKind.CATEGORICAL, 0, len(found) - 1, found))
    for name, low, high in (("age", 17, 90), ("educ", 1, 16), ("hours", 1, 99)):
        stored[name] = raw[name].to_numpy(float)
        columns.append(Column(name, ColumnKind.INTEGER, low, high))
    return pd.DataFrame(stored), tuple(columns)


def cps(folder: Path) -> tuple[pd.DataFrame, tuple[Column, ...]]:
    """The wages' columns as they are stored."""
    raw = pd.read_csv(folder / "cps_asec_2024_wages.csv")
    raw["high_wage"] = (raw.log_wage > np.log(60_000)).astype(float)
    kept = ["log_wage", "educ_years", "experience", "female", "high_wage"]
    return raw[kept].astype(float), (
        Column("log_wage", ColumnKind.NUMERIC, 0, 15),
        Column("educ_years", ColumnKind.INTEGER, 0, 24),
        Column("experience", ColumnKind.INTEGER, 0, 80),
        Column("female", ColumnKind.BOOLEAN, 0, 1),
        Column("high_wage", ColumnKind.BOOLEAN, 0, 1),
    )


TABLES = {"adult": adult, "cps": cps}


def profiled(table: pd.DataFrame, columns: tuple[Column, ...], n: int) -> DatasetFacts:
    """Public facts with the table's own quantiles."""
    known = {
        c.name: ColumnProfile(quantiles=tuple(np.quantile(table[c.name], PROFILE_PROBABILITIES)))
        for c in columns
        if not c.levels and not c.is_dummy
    }
    return DatasetFacts("t", "t", 1, "v", n, Schema(columns), Profile(known))


def read(found: Any) -> SyntheticTables:
    """The client's object of a result."""
    return SyntheticTables({"query": {"kind": "synthetic"}, "result": asdict(found)})


def exact(plan: Any, table: dict[str, Any]) -> SyntheticTables:
    """The same without noise."""
    recipe = plan.run()
    step = next(recipe)
    cells = step.map_fn(Block(0, len(next(iter(table.values()))), table, {}))
    counts = [
        Released(np.bincount(c.astype(int), minlength=part.bins).astype(float), 0.0)
        for part, c in zip(step.parts, cells, strict=True)
    ]
    try:
        recipe.send(tuple(counts))
    except StopIteration as stop:
        result = asdict(stop.value) | {"standard_error": 1e-9}
    return SyntheticTables({"query": {"kind": "synthetic"}, "result": result})


def rows_of(table: pd.DataFrame, rng: Any, n: int) -> dict[str, Any]:
    """A bootstrap sample, by column."""
    places = rng.integers(len(table), size=n)
    return {str(name): table[name].to_numpy()[places] for name in table}


def coverage(name: str, folder: Path, n: int, epsilon: float, reps: int) -> list[str]:
    """One question with every clique of the table; a line for each."""
    table, columns = TABLES[name](folder)
    cases = [case for case in CASES if case.table == name]
    cliques = tuple(case.clique for case in cases)
    names = tuple(dict.fromkeys(column for of in cliques for column in of))
    query = Synthetic(names, cliques)
    plan = KIND.plan(profiled(table, columns, n), query, offer(epsilon))
    whole = KIND.plan(profiled(table, columns, len(table)), query, offer(epsilon))
    truth = exact(whole, {str(k): table[k].to_numpy() for k in table})
    rng = np.random.default_rng(n)
    samples = [rows_of(table, rng, n) for _ in range(reps)]
    pairs = [(read(answer(plan, rows)), exact(plan, rows)) for rows in samples]
    return [_line(case, truth, pairs, n, epsilon) for case in cases]


def _line(case: CliqueCase, truth: SyntheticTables, pairs: Any, n: int, epsilon: float) -> str:
    def fit(of: SyntheticTables) -> Any:
        return getattr(of, case.model)(case.formula)

    target = np.asarray(fit(truth).params)
    share = truth.table(case.crosstab).shares()[0]
    held, ratios, cells, closed = [], [], [], 0
    for noisy, plain in pairs:
        p, error = noisy.table(case.crosstab).shares()
        cells.append(np.abs(p - share) <= 1.96 * error)
        found = fit(noisy)
        if not all(found.estimable):
            closed += 1
            continue
        low, high = found.conf_int().T
        held.append((low <= target) & (target <= high))
        ratios.append(np.asarray(found.bse) / np.asarray(fit(plain).bse))
    said = (
        f"{np.mean(np.array(held)[:, 1:]):.3f} | {np.median(np.array(ratios)[:, 1:]):.2f} ×"
        if held
        else "none | none"
    )
    return (
        f"| {case.table} | {case.formula} | {n:,} | {epsilon:g} | {said} | "
        f"{closed / len(pairs):.2f} | {np.mean(cells):.3f} |"
    )


def distance(tables: SyntheticTables, records: pd.DataFrame, rows: dict[str, Any]) -> float:
    """Mean L1 over pairs between shares of the records and of the sample, both as cells' places."""
    found = []
    for pair in combinations(tables.columns, 2):
        sizes = [len(tables.columns[name].levels) for name in pair]
        shares = [
            np.bincount(
                np.ravel_multi_index([of[name].astype(int) for name in pair], sizes),
                minlength=sizes[0] * sizes[1],
            )
            / len(of[pair[0]])
            for of in (records, rows)
        ]
        found.append(np.abs(shares[0] - shares[1]).sum())
    return float(np.mean(found))


def by_aim(rows: dict[str, Any], rho: float) -> pd.DataFrame:
    """OpenDP's records, where there is a Python for it."""
    with TemporaryDirectory() as folder:
        codes, records = Path(folder) / "codes.csv", Path(folder) / "records.csv"
        pd.DataFrame(rows).to_csv(codes, index=False)
        script = Path(__file__).parent / "synthetic_aim.py"
        words = [os.environ["AIM_PYTHON"], str(script), str(codes), str(rho), str(records)]
        own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        subprocess.run(words, check=True, env=own)
        found = pd.read_csv(records)
    return found[(found >= 0).all(axis=1)]


def codes(tables: SyntheticTables, rows: dict[str, Any]) -> dict[str, Any]:
    """The sample's cells by column."""
    found = {}
    for name in tables.columns:
        levels = [row for row in tables.result["levels"] if row["column"] == name]
        if levels[0]["lower"] is None:
            places = rows[name] - (levels[0]["number"] or 0.0)
        else:
            starts = [row["lower"] for row in levels]
            places = np.searchsorted(starts, rows[name], side="right") - 1
        found[name] = places.astype(int)
    return found


def utility(folder: Path, epsilon: float) -> str:
    """Adult's nine columns: every pair released, and records of mbi's model of them."""
    table, columns = adult(folder)
    plan = KIND.plan(
        profiled(table, columns, len(table)), Synthetic(tuple(table.columns)), offer(epsilon)
    )
    sample = {str(k): table[k].to_numpy() for k in table}
    tables = read(answer(plan, sample))
    rows = codes(tables, sample)
    released = []
    for pair in combinations(tables.columns, 2):
        of = tables.table(pair)
        real = exact(plan, sample).table(pair)
        released.append(np.abs(of.positive() - real.counts.ravel()).sum() / of.number)
    sizes = {name: len(of.levels) for name, of in tables.columns.items()}
    try:
        drawn = joint_records(tables.all_tables, sizes, len(table))
        said = f"{distance(tables, pd.DataFrame(drawn), rows):.3f}"
    except MissingDependency:
        said = "needs the extra"
    theirs = "not asked"
    if "AIM_PYTHON" in os.environ:
        records = by_aim(rows, offer(epsilon).rho / RHO_UNITS)
        theirs = f"{distance(tables, records, rows):.3f}"
    return f"| {epsilon:g} | {np.mean(released):.3f} | {said} | {theirs} |"


def main() -> None:
    """Coverage, or utility."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 and Path(sys.argv[1]).is_dir() else DATA
    absent = [name for name in FILES if not (folder / name).exists()]
    if absent:
        print(f"!! SKIPPED: {folder} has no {', no '.join(absent)}")
        return
    if "utility" in sys.argv:
        print("| ε | released pairs | records of the model | OpenDP's AIM |\n|---|---|---|---|")
        for epsilon in EPSILONS:
            print(utility(folder, epsilon), flush=True)
        return
    reps = next((int(word) for word in sys.argv[2:] if word.isdigit()), REPS)
    print("| table | model | n | ε | slopes held | width | no interval | shares held |")
    print("|---|---|---|---|---|---|---|---|")
    for name in TABLES:
        for n in SIZES:
            for epsilon in EPSILONS:
                print("\n".join(coverage(name, folder, n, epsilon, reps)), flush=True)


if __name__ == "__main__":
    main()
