# SPDX-License-Identifier: Apache-2.0
"""Level and power of the tests that have a name, beside SciPy's on the same tables, and coverage of
their intervals.

A line is a test, a law, n and ε: of REPS tables without an effect the share of p-values below .05,
of EFFECT_REPS with one (the same for each ε, such that SciPy's power is .4 to .9) the same, ours
and SciPy's, and the share of intervals that hold the effect: of no effect, and of the effect as the
test sees it in a table of 400,000 records without noise. Planned, mapped and released by the
server's own code, with the profile of a table of 100,000 records of the law.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import numpy as np
from scipy import stats

from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, RHO_UNITS, PrivacyCost
from reticent_server.domain.facts import PROFILE_PROBABILITIES, ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.private import Private
from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.domain.steps import Block
from reticent_server.kinds.anova.kind import KIND as ANOVA
from reticent_server.kinds.anova.kind import Anova
from reticent_server.kinds.correlation.kind import KIND as CORRELATION
from reticent_server.kinds.correlation.kind import Correlation
from reticent_server.kinds.correlation.pearson import PearsonPlan
from reticent_server.kinds.kruskal.kind import KIND as KRUSKAL
from reticent_server.kinds.kruskal.kind import Kruskal
from reticent_server.kinds.ks_test.kind import KIND as KS_TEST
from reticent_server.kinds.ks_test.kind import KsTest
from reticent_server.kinds.mann_whitney.kind import KIND as MANN_WHITNEY
from reticent_server.kinds.mann_whitney.kind import MannWhitney
from reticent_server.kinds.proportion_test.kind import KIND as PROPORTION_TEST
from reticent_server.kinds.proportion_test.kind import ProportionTest
from reticent_server.kinds.t_test.kind import KIND as T_TEST
from reticent_server.kinds.t_test.kind import TTest
from reticent_server.mechanisms import registry

REPS = 400  # without an effect: a level of .05 has the standard error .011
EFFECT_REPS = 100  # with one: a power of .5 has the standard error .05
SIZES = (500, 2000, 20_000)
EPSILONS = (0.5, 1.0, 4.0)
LARGE = 400_000
QUIET = 10**6 * RHO_UNITS  # ρ of a release without noise to speak of
COLUMNS = (
    Column("y", ColumnKind.NUMERIC, -100.0, 1000.0),
    Column("x", ColumnKind.NUMERIC, -100.0, 1000.0),
    Column("b", ColumnKind.BOOLEAN, 0.0, 1.0),
    Column("two", ColumnKind.CATEGORICAL, 0.0, 1.0, ("first", "second")),
    Column("four", ColumnKind.CATEGORICAL, 0.0, 3.0, ("a", "b", "c", "d")),
)
UNEQUAL = np.array([1.0, 3.0, 1.0, 2.0])  # standard deviations by group
Table = dict[str, Any]


@dataclass(frozen=True)
class HalvesLaw:
    """A table of n records whose effect is δ standard errors of a comparison of two halves.

    step: what values are whole multiples of, 0 for none. by_ranks: the share of δ that tests of
    ranks are given, which see an effect in a skewed law sooner.
    """

    name: str
    centre: Callable[[Any, int], Any]
    unequal: bool = False
    step: float = 0.0
    by_ranks: float = 1.0

    def table(self, rng: Any, n: int, delta: float, names: tuple[str, ...]) -> Table:
        shares = [0.5, 0.3, 0.15, 0.05] if self.unequal else [0.25] * 4
        four = rng.choice(4, n, p=shares)
        two = (rng.random(n) < (0.7 if self.unequal else 0.5)).astype(int)
        shift = delta * 2 / np.sqrt(n)
        spread = UNEQUAL[two] if self.unequal else 1.0
        y = self.centre(rng, n) * spread
        r = min(shift / 2, 0.9)
        x = self.centre(rng, n)
        made: dict[str, Callable[[], Any]] = {
            "two": lambda: two.astype(float),
            "four": lambda: four.astype(float),
            "y": lambda: self._rounded(rng, y + shift * (two == 0)),
            "y4": lambda: self._rounded(rng, self._by_four(rng, four) + 1.4 * shift * (four == 0)),
            "b": lambda: (rng.random(n) < 0.3 + 0.46 * shift * (two == 0)).astype(float),
            "x": lambda: x,
            "related": lambda: self._rounded(rng, r * x + np.sqrt(1 - r * r) * self.centre(rng, n)),
        }
        return {name: made[name]() for name in names}

    def _rounded(self, rng: Any, values: Any) -> Any:
        """To whole steps, up or down by chance: what is one already stays."""
        if self.step == 0.0:
            return values
        return np.floor(values / self.step + 1e-9 + 0.999 * rng.random(len(values))) * self.step

    def _by_four(self, rng: Any, four: Any) -> Any:
        return self.centre(rng, len(four)) * (UNEQUAL[four] if self.unequal else 1.0)


LAWS = (
    HalvesLaw("normal", lambda rng, n: rng.normal(size=n)),
    HalvesLaw(
        "skewed", lambda rng, n: (np.exp(rng.normal(size=n)) - np.exp(0.5)) / 2.16, by_ranks=0.45
    ),
    HalvesLaw("ties", lambda rng, n: np.floor(rng.exponential(2, size=n)) * 0.5, step=0.5),
    HalvesLaw("unequal", lambda rng, n: rng.normal(size=n), unequal=True),
)


@dataclass(frozen=True)
class Case:
    """A test: its kind and question, what its table is made of, SciPy's p-value, and δ."""

    name: str
    kind: Any
    query: Any
    columns: dict[str, str]
    peer: Callable[[Table], float]
    delta: float
    laws: tuple[str, ...] = ("normal", "skewed", "ties", "unequal")
    ranks: bool = False


def _split(table: Table, group: str) -> list[Any]:
    return [table["y"][table[group] == g] for g in np.unique(table[group])]


def _welch(table: Table) -> float:
    return float(stats.ttest_ind(*_split(table, "two"), equal_var=False).pvalue)


def _proportions(table: Table) -> float:
    counts = [[(table["b"][table["two"] == g] == v).sum() for v in (0, 1)] for g in (0, 1)]
    return float(stats.chi2_contingency(counts, correction=False).pvalue)


TWO, FOUR = {"y": "y", "two": "two"}, {"y": "y4", "four": "four"}
PAIR = {"x": "x", "y": "related"}
SHAPES = ("normal", "skewed", "ties")
CASES = (
    Case("t_test", T_TEST, TTest("y", "two"), TWO, _welch, 2.8),
    Case(
        "t_test, one mean",
        T_TEST,
        TTest("y"),
        TWO,
        lambda t: float(stats.ttest_1samp(t["y"], 0).pvalue),
        2.8,
        ("normal",),
    ),
    Case(
        "t_test, paired",
        T_TEST,
        TTest(columns=("y", "x"), paired=True),
        {"x": "x", "y": "y"},
        lambda t: float(stats.ttest_rel(t["y"], t["x"]).pvalue),
        4.0,
        ("normal",),
    ),
    Case(
        "anova",
        ANOVA,
        Anova("y", "four"),
        FOUR,
        lambda t: float(stats.f_oneway(*_split(t, "four")).pvalue),
        2.8,
    ),
    Case(
        "mann_whitney",
        MANN_WHITNEY,
        MannWhitney("y", "two"),
        TWO,
        lambda t: float(stats.mannwhitneyu(*_split(t, "two")).pvalue),
        2.8,
        SHAPES,
        ranks=True,
    ),
    Case(
        "kruskal",
        KRUSKAL,
        Kruskal("y", "four"),
        FOUR,
        lambda t: float(stats.kruskal(*_split(t, "four")).pvalue),
        2.8,
        SHAPES,
        ranks=True,
    ),
    Case(
        "proportion_test",
        PROPORTION_TEST,
        ProportionTest("b", "two"),
        {"b": "b", "two": "two"},
        _proportions,
        2.8,
        ("normal",),
    ),
    Case(
        "pearson",
        CORRELATION,
        Correlation(("x", "y")),
        PAIR,
        lambda t: float(stats.pearsonr(t["x"], t["y"]).pvalue),
        2.8,
        SHAPES,
    ),
    Case(
        "spearman",
        CORRELATION,
        Correlation(("x", "y"), "spearman"),
        PAIR,
        lambda t: float(stats.spearmanr(t["x"], t["y"]).pvalue),
        2.8,
        SHAPES,
        ranks=True,
    ),
    Case(
        "kendall",
        CORRELATION,
        Correlation(("x", "y"), "kendall"),
        PAIR,
        lambda t: float(stats.kendalltau(t["x"], t["y"]).pvalue),
        2.8,
        SHAPES,
        ranks=True,
    ),
    Case(
        "ks_test",
        KS_TEST,
        KsTest("y", "two"),
        TWO,
        lambda t: float(stats.ks_2samp(*_split(t, "two"), method="asymp").pvalue),
        3.2,
        SHAPES,
        ranks=True,
    ),
)


def facts(n: int, table: Table) -> DatasetFacts:
    """With the exact quantiles of a table of the law as a profile."""
    profile = {
        name: ColumnProfile(quantiles=tuple(np.quantile(table[name], PROFILE_PROBABILITIES)))
        for name in {"y", "x"} & set(table)
    }
    return DatasetFacts("bench", "bench", 1, "v", n, Schema(COLUMNS), Profile(profile))


def offer(epsilon: float) -> PrivacyCost:
    return PrivacyCost(int(epsilon * EPSILON_UNITS), DELTA_UNITS // 10**6, rho_units(epsilon, 1e-6))


def answer(plan: Any, table: Table, missing: Table | None = None) -> Any:
    """The plan's result on one table. missing: masks of columns."""
    block, recipe = Block(0, len(next(iter(table.values()))), table, missing or {}), plan.run()
    step = next(recipe)
    while True:
        totals = [
            registry.encode(p, v) for p, v in zip(step.parts, step.map_fn(block), strict=True)
        ]
        released = [
            registry.release(p, Private(t)) for p, t in zip(step.parts, totals, strict=True)
        ]
        try:
            step = recipe.send(tuple(released))
        except StopIteration as stop:
            return stop.value


def drawn(case: Case, law: HalvesLaw, rng: Any, n: int, delta: float) -> Table:
    """The columns of a case."""
    table = law.table(rng, n, delta, tuple(case.columns.values()))
    return {name: table[source] for name, source in case.columns.items()}


def line(case: Case, law: HalvesLaw, n: int, epsilon: float) -> tuple[float, ...]:
    """Level, SciPy's level, power, SciPy's power, coverage without and with the effect."""
    rng = np.random.default_rng([n, int(10 * epsilon), crc32(f"{case.name} {law.name}".encode())])
    public = facts(n, drawn(case, law, rng, 100_000, 0.0))
    plan = case.kind.plan(public, case.query, offer(epsilon))
    shares, effect = [], case.delta * (law.by_ranks if case.ranks else 1.0)
    for delta, reps in ((0.0, REPS), (effect, EFFECT_REPS)):
        rows = []
        truth = truth_of(case, law, plan, rng, delta / np.sqrt(n) * np.sqrt(LARGE))
        for _ in range(reps):
            table = drawn(case, law, rng, n, delta)
            found = answer(plan, table)
            low, high = found.effect_interval
            covered = low - 1e-9 <= truth <= high + 1e-9
            rows.append((found.p_value < 0.05, case.peer(table) < 0.05, covered))
        shares.append(np.mean(rows, axis=0))
    none, some = shares
    return none[0], none[1], some[0], some[1], none[2], some[2]


def truth_of(case: Case, law: HalvesLaw, plan: Any, rng: Any, delta: float) -> float:
    """What the plan's effect is without noise: of a large table, with the parts at 10⁶ times their
    ρ.
    """
    if delta == 0.0:
        return 0.5 if case.name == "mann_whitney" else 0.0
    quiet: Table = {"n": LARGE}
    if isinstance(plan, PearsonPlan):
        quiet["rhos"] = tuple(QUIET for _ in plan.rhos)
    else:
        quiet["part"] = replace(plan.part, rho=QUIET)
    if getattr(plan, "pilot", None) is not None:
        quiet["pilot"] = replace(plan.pilot, rho=QUIET)
    return float(answer(replace(plan, **quiet), drawn(case, law, rng, LARGE, delta)).effect)


def main() -> None:
    """Prints a line for each; `python -m benchmarks.named_tests NAME …` those of the named
    tests.
    """
    print("| test | law | n | ε | level | SciPy | power | SciPy | coverage, none | effect |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    asked = sys.argv[1:] if "named_tests" in sys.argv[0] else []
    for case in CASES:
        if asked and case.name not in asked:
            continue
        for law in LAWS:
            if law.name not in case.laws:
                continue
            for n in SIZES:
                for epsilon in EPSILONS:
                    found = line(case, law, n, epsilon)
                    cells = " | ".join(f"{x:.3f}".lstrip("0") for x in found)
                    print(
                        f"| {case.name} | {law.name} | {n:,} | {epsilon:g} | {cells} |", flush=True
                    )


if __name__ == "__main__":
    main()
