# SPDX-License-Identifier: Apache-2.0
"""Every kind of question in one table, a line each: error, coverage and level beside the same
analysis without privacy.

`python -m benchmarks every_kind` prints a Markdown table and one JSON line. For each n and ε a cell
has

    a, b    a: root mean square error over that of the usual estimator (least squares, maximum
            likelihood, Kaplan and Meier, SciPy's) on the same tables, about the truth of the law
            that they are drawn from; b: the share of 95 % intervals that
            hold it. Counts and sums are about the table, whose own number an interval has to hold.
    level   of a test: the share of p-values below .05 of tables without an effect.

EVERY_KIND_RUNS=40,20,6 are the tables of each n; EVERY_KIND_LINES=mean,glm those lines only.
Profiles are the quantiles and shares of another table of 100,000 records of the law.
"""

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import statsmodels.api as sm
from scipy import stats
from scipy.special import expit

from benchmarks.named_tests import offer
from reticent_server.domain.facts import PROFILE_PROBABILITIES, ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.plan import Planned
from reticent_server.domain.private import Private
from reticent_server.domain.query import Query
from reticent_server.domain.results import result_json
from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.domain.steps import Block, ColumnStep
from reticent_server.kinds import KINDS
from reticent_server.kinds.anova.kind import Anova
from reticent_server.kinds.correlation.kind import Correlation
from reticent_server.kinds.count.kind import Count
from reticent_server.kinds.crosstab.kind import Crosstab
from reticent_server.kinds.depth_median.query import DepthMedian
from reticent_server.kinds.describe.kind import Describe
from reticent_server.kinds.did.kind import Did
from reticent_server.kinds.discontinuity.kind import Discontinuity
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.hazard_regression.kind import HazardRegression
from reticent_server.kinds.histogram.kind import Histogram
from reticent_server.kinds.hypothesis_test.query import HypothesisTest
from reticent_server.kinds.iqr.kind import Iqr
from reticent_server.kinds.kruskal.kind import Kruskal
from reticent_server.kinds.ks_test.kind import KsTest
from reticent_server.kinds.location_scale.query import LocationScale
from reticent_server.kinds.log_rank.kind import LogRank
from reticent_server.kinds.m_estimate.kind import MEstimateQuery
from reticent_server.kinds.mann_whitney.kind import MannWhitney
from reticent_server.kinds.mean.kind import Mean
from reticent_server.kinds.median.kind import Median
from reticent_server.kinds.proportion_test.kind import ProportionTest
from reticent_server.kinds.quantile_regression.kind import QuantileRegression
from reticent_server.kinds.quantiles.kind import Quantiles
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.kinds.sum.kind import Sum
from reticent_server.kinds.survival_curve.kind import SurvivalCurve
from reticent_server.kinds.t_test.kind import TTest
from reticent_server.mechanisms import column_registry, registry

Table = dict[str, Any]
SIZES, EPSILONS = (2000, 20_000, 200_000), (0.5, 1.0, 4.0)
RUNS = dict(
    zip(SIZES, map(int, os.environ.get("EVERY_KIND_RUNS", "40,20,6").split(",")), strict=True)
)
ASKED = [name for name in os.environ.get("EVERY_KIND_LINES", "").split(",") if name]
NUMERIC, INTEGER, BOOLEAN, LEVELS = (
    ColumnKind.NUMERIC,
    ColumnKind.INTEGER,
    ColumnKind.BOOLEAN,
    ColumnKind.CATEGORICAL,
)
COLUMNS = (
    *(Column(name, NUMERIC, -20.0, 20.0) for name in ("y", "x", "z", "skewed_y", "jump_y",
            "did_y")),
    Column("amount", NUMERIC, 0.001, 200.0),
    Column("time", NUMERIC, 0.0, 8.0),
    Column("running", NUMERIC, -1.0, 1.0),
    Column("number", INTEGER, 0.0, 60.0),
    Column("period", INTEGER, 0.0, 4.0),
    *(Column(name, BOOLEAN, 0.0, 1.0) for name in ("yes", "died", "treated", "half")),
    Column("g", LEVELS, 0.0, 3.0, ("a", "b", "c", "d")),
)  # fmt: skip
SHARES = np.array([0.4, 0.3, 0.2, 0.1])
SLOPES = np.array([1.0, 0.5, -0.3])
COUNTS, AMOUNTS, ODDS = (
    np.array([0.5, 0.4, 0.2]),
    np.array([1.0, 0.3, 0.2]),
    np.array([-0.5, 0.6, 0.3]),
)
HAZARD, CENSORED, CUTS = 0.4, 8.0, (1.0, 2.0, 4.0, 6.0)
JUMP, EFFECT, SPREAD = 0.5, 0.5, float(np.sqrt(1 + 0.25 + 0.09 - 0.15))  # sd of y
BINS = (-20.0, -1.0, 0.0, 1.0, 2.0, 3.0, 20.0)


def table(n: int, rng: Any) -> Table:
    """n records of the law."""
    x = rng.normal(size=n)
    z = 0.5 * x + np.sqrt(0.75) * rng.normal(size=n)
    X = np.column_stack([np.ones(n), x, z])
    running, period = rng.uniform(-1, 1, n), rng.integers(0, 5, n)
    treated, died_at = rng.random(n) < 0.5, rng.exponential(size=n) * 5 * np.exp(-HAZARD * x)
    columns = {
        "y": X @ SLOPES + rng.normal(size=n),
        "x": x,
        "z": z,
        "skewed_y": X @ SLOPES + rng.exponential(size=n) - 1,
        "jump_y": running + JUMP * (running >= 0) + rng.normal(size=n),
        "did_y": 0.3 * treated + 0.1 * period + EFFECT * (treated & (period >= 3))
        + rng.normal(size=n),
        "amount": np.maximum(rng.gamma(2, np.exp(X @ AMOUNTS) / 2), 0.001),
        "time": np.minimum(died_at, CENSORED),
        "running": running,
        "number": rng.poisson(np.exp(X @ COUNTS)),
        "period": period,
        "yes": rng.random(n) < expit(X @ ODDS),
        "died": died_at < CENSORED,
        "treated": treated,
        "half": rng.random(n) < 0.5,
        "g": rng.choice(4, n, p=SHARES),
    }  # fmt: skip
    return {c.name: np.clip(columns[c.name] * 1.0, c.lower, c.upper) for c in COLUMNS}


@dataclass(frozen=True)
class Analysis:
    """An analysis. ours: (estimates, lower ends, upper ends) of a result, NaN where there is none;
    plain: the usual estimates on a table; truth: of the law, None for what is about the table. p:
    p-values of a result, of a test without an effect.
    """

    name: str
    query: Query
    ours: Callable[[Mapping[str, Any]], tuple[Any, Any, Any]] | None = None
    plain: Callable[[Table], Any] | None = None
    truth: Any = None
    p: Callable[[Mapping[str, Any]], Any] | None = None
    expected: Callable[[int], Any] | None = None


def facts(n: int) -> DatasetFacts:
    other = table(100_000, np.random.default_rng(1))
    known = {
        c.name: ColumnProfile(counts=tuple(
            np.bincount(other[c.name].astype(int), minlength=int(c.upper) + 1).astype(float)))
        if c.kind in {BOOLEAN, LEVELS}
        else ColumnProfile(quantiles=tuple(np.quantile(other[c.name], PROFILE_PROBABILITIES)))
        for c in COLUMNS
    }  # fmt: skip
    return DatasetFacts("bench", "bench", 1, "v", n, Schema(COLUMNS), Profile(known))


def answer(planned: Planned, columns: Table | Block) -> Any:
    """The result on one table through the server's mechanisms, as a reply holds it; None: No
    Reply.
    """
    block = columns if isinstance(columns, Block) else Block(0, len(columns["y"]), columns, {})
    recipe = planned.run()
    try:
        step = next(recipe)
        while True:
            values = step.map_fn(block)
            if isinstance(step, ColumnStep):
                cells = [Private(np.asarray(value)) for value in values]
                step = recipe.send(tuple(map(column_registry.release, step.parts, cells)))
            else:
                sums = registry.encode_all(step.parts, values, joint=step.joint)
                pairs = zip(step.parts, sums, strict=True)
                step = recipe.send(tuple(registry.release(part, Private(s)) for part, s in pairs))
    except StopIteration as stop:
        return None if stop.value is None else result_json(stop.value)


def ends(pairs: Any) -> tuple[Any, Any]:
    found = np.array([[np.nan if x is None else x for x in pair] for pair in pairs], dtype=float)
    return found[:, 0], found[:, 1]


def of_terms(*places: int) -> Callable[[Mapping[str, Any]], tuple[Any, Any, Any]]:
    """Of a fit's terms; none: of all."""

    def read(result: Mapping[str, Any]) -> tuple[Any, Any, Any]:
        at = list(places) or list(range(len(result["terms"])))
        low, high = ends(result["confidence_intervals"])
        return np.array(result["coefficients"])[at], low[at], high[at]

    return read


def one(name: str = "value", interval: str = "confidence_interval") -> Callable[..., Any]:
    def read(result: Mapping[str, Any]) -> tuple[Any, Any, Any]:
        value = np.atleast_1d(np.array(result[name], dtype=float))
        low, high = ends([result[interval]]) if interval in result else (value * np.nan,) * 2
        return value, low, high

    return read


def many(name: str, intervals: str) -> Callable[..., Any]:
    def read(result: Mapping[str, Any]) -> tuple[Any, Any, Any]:
        values = np.ravel(np.array(result[name], dtype=float))
        if intervals == "interval_half_width":
            return values, values - result[intervals], values + result[intervals]
        low, high = ends(result[intervals]) if intervals in result else (values * np.nan,) * 2
        return values, low, high

    return read


def location(result: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    low, high = ends(result["confidence_intervals"])
    return np.array([result["location"], result["scale"]]), low, high


def described(result: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    column = next(c for c in result["columns"] if c["column"] == "y")["groups"][0]
    found = [column["mean"], *column["quartiles"]]
    low, high = ends([f["confidence_interval"] for f in found])
    return np.array([f["value"] for f in found]), low, high


def first(read: Callable[..., Any], name: str) -> Callable[..., Any]:
    return lambda result: read(result[name][0])


def least_squares(*names: str, y: str = "y") -> Callable[[Table], Any]:
    def fit(t: Table) -> Any:
        X = np.column_stack([np.ones(len(t[y])), *(t[name] for name in names)])
        return np.linalg.lstsq(X, t[y], rcond=None)[0]

    return fit


def model(family: Any, y: str) -> Callable[[Table], Any]:
    def fit(t: Table) -> Any:
        X = np.column_stack([np.ones(len(t[y])), t["x"], t["z"]])
        return sm.GLM(t[y], X, family=family).fit().params

    return fit


def middle_regression(t: Table) -> Any:
    X = np.column_stack([np.ones(len(t["y"])), t["x"], t["z"]])
    return sm.QuantReg(t["y"], X).fit(q=0.5).params


def two_ways(t: Table) -> Any:
    """The effect of a differences in differences of repeated cross-sections."""
    dummies = [t["period"] == k for k in range(1, 5)]
    X = np.column_stack(
        [np.ones(len(t["y"])), t["treated"], *dummies, t["treated"] * (t["period"] >= 3)]
    )
    return np.linalg.lstsq(X, t["did_y"], rcond=None)[0][-1:]


def local_linear(t: Table) -> Any:
    """The jump at 0 by a triangular kernel of half a unit."""
    r = t["running"]
    w = np.sqrt(np.maximum(1 - np.abs(r) / 0.5, 0))
    X = np.column_stack([np.ones(len(r)), r >= 0, r, r * (r >= 0)]) * w[:, None]
    return np.linalg.lstsq(X, t["jump_y"] * w, rcond=None)[0][1:2]


def proportional(t: Table) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sm.PHReg(t["time"], t["x"][:, None], status=t["died"]).fit().params


def kaplan_meier(t: Table) -> Any:
    """Survival at CUTS: nobody is censored before."""
    return np.array([np.mean(t["time"] > cut) for cut in CUTS])


def survival_at(cut: float) -> float:
    """E exp(−cut e^{.4 x}/5) over x ~ N(0, 1)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    return float(np.sum(weights * np.exp(-cut / 5 * np.exp(HAZARD * nodes))) / np.sum(weights))


def survival(result: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    at = [list(result["times"]).index(cut) for cut in CUTS]
    low, high = ends(result["confidence_intervals"])
    return np.array(result["survival"])[at], low[at], high[at]


def named(word: str) -> Callable[[Mapping[str, Any]], tuple[Any, Any, Any]]:
    """Of the one term whose name begins with `word`."""

    def read(result: Mapping[str, Any]) -> tuple[Any, Any, Any]:
        at = next(k for k, name in enumerate(result["terms"]) if name.startswith(word))
        return of_terms(at)(result)

    return read


QUARTERS = (0.25, 0.5, 0.75)
P = lambda result: [result["p_value"]]  # noqa: E731
EFFECT_OF = one("effect", "effect_interval")
LINES = (
    Analysis("count", Count("x > 0.5"), one(), lambda t: np.array([np.sum(t["x"] > 0.5)]),
        expected=lambda n: n * stats.norm.sf(0.5)),
    Analysis("sum", Sum("y"), one(), lambda t: np.array([np.sum(t["y"])]),
        expected=lambda n: n * 1.0),
    Analysis("mean", Mean("y"), one(), lambda t: np.array([np.mean(t["y"])]), [1.0]),
    Analysis("histogram", Histogram("y", BINS), many("values", "confidence_intervals"),
        lambda t: np.histogram(t["y"], BINS)[0] * 1.0,
        expected=lambda n: n * np.diff(stats.norm.cdf(BINS, 1.0, SPREAD))),
    Analysis("crosstab", Crosstab(("g", "half")), many("values", "interval_half_width"),
        lambda t: np.histogram2d(t["g"], t["half"], (4, 2))[0].ravel(),
        expected=lambda n: np.repeat(n * SHARES / 2, 2),
        p=lambda r: [r["independence"]["p_value"]]),
    Analysis("describe", Describe(("y", "x", "g")), described,
        lambda t: np.array([np.mean(t["y"]), *np.quantile(t["y"], QUARTERS)]),
        [1.0, *stats.norm.ppf(QUARTERS, 1.0, SPREAD)]),
    Analysis("quantiles", Quantiles("y", QUARTERS), many("values", "confidence_intervals"),
        lambda t: np.quantile(t["y"], QUARTERS), stats.norm.ppf(QUARTERS, 1.0, SPREAD)),
    Analysis("median", Median("y"), one(), lambda t: np.array([np.median(t["y"])]), [1.0]),
    Analysis("median, propose–test–release", Median("y", "ptr"), one(),
        lambda t: np.array([np.median(t["y"])]), [1.0]),
    Analysis("iqr", Iqr("y"), one(),
        lambda t: np.array([np.ptp(np.quantile(t["y"], (0.25, 0.75)))]),
        [2 * SPREAD * stats.norm.ppf(0.75)]),
    Analysis("m_estimate", MEstimateQuery("y", tuning=1.5), one(),
        lambda t: np.array([np.mean(t["y"])]), [1.0]),
    Analysis("location_scale", LocationScale("y"), location,
        lambda t: np.array([np.mean(t["y"]), np.std(t["y"])]), [1.0, SPREAD]),
    Analysis("depth_median", DepthMedian(("x", "z"), directions=100), many("point", ""),
        lambda t: np.array([np.median(t["x"]), np.median(t["z"])]), [0.0, 0.0]),
    Analysis("linear_regression", LinearRegression("y ~ x + z"), of_terms(),
        least_squares("x", "z"), SLOPES),
    Analysis("linear_regression, skewed errors, squared loss",
        LinearRegression("skewed_y ~ x + z", loss="squared"), of_terms(1, 2),
        lambda t: least_squares("x", "z", y="skewed_y")(t)[1:], SLOPES[1:]),
    Analysis("glm, binomial", Glm("yes ~ x + z", "binomial"), of_terms(),
        model(sm.families.Binomial(), "yes"), ODDS),
    Analysis("glm, poisson", Glm("number ~ x + z", "poisson"), of_terms(),
        model(sm.families.Poisson(), "number"), COUNTS),
    Analysis("glm, gamma", Glm("amount ~ x + z", "gamma"), of_terms(),
        model(sm.families.Gamma(sm.families.links.Log()), "amount"), AMOUNTS),
    Analysis("quantile_regression, .5", QuantileRegression("y ~ x + z"), first(of_terms(), "fits"),
        middle_regression, SLOPES),
    Analysis("did", Did("did_y", "treated", "period", start=3.0), named("did("), two_ways,
        [EFFECT]),
    Analysis("discontinuity", Discontinuity("jump_y", "running", 0.0, 0.5), of_terms(1),
        local_linear, [JUMP]),
    Analysis("hypothesis_test, Wald",
        HypothesisTest("jump_y ~ running + x + z", ("x = 0", "z = 0")), p=P),
    Analysis("hypothesis_test, score",
        HypothesisTest("half ~ x + z", ("x = 0", "z = 0"), "score", "binomial"), p=P),
    Analysis("survival_curve", SurvivalCurve("time", "died", cuts=CUTS), survival, kaplan_meier,
        [survival_at(c) for c in CUTS]),
    Analysis("log_rank", LogRank("time", "died", "g"), p=P),
    Analysis("hazard_regression", HazardRegression("Surv(time, died) ~ x"), of_terms(),
        proportional, [HAZARD]),
    Analysis("t_test", TTest("did_y", "treated"), EFFECT_OF,
        lambda t: np.array([-np.diff([np.mean(t["did_y"][t["treated"] == k]) for k in (0, 1)])[0]]),
        [-0.3 - 0.4 * EFFECT]),
    Analysis("t_test, no effect", TTest("y", "half"), p=P),
    Analysis("anova, no effect", Anova("y", "g"), p=P),
    Analysis("mann_whitney, no effect", MannWhitney("y", "half"), p=P),
    Analysis("kruskal, no effect", Kruskal("y", "g"), p=P),
    Analysis("proportion_test, no effect", ProportionTest("died", "half"), p=P),
    Analysis("correlation", Correlation(("x", "z")), EFFECT_OF,
        lambda t: np.array([np.corrcoef(t["x"], t["z"])[0, 1]]), [0.5]),
    Analysis("ks_test, no effect", KsTest("y", "half"), p=P),
)  # fmt: skip


class Tally:
    """What the runs of one line and n have found, by ε."""

    def __init__(self, line: Analysis, n: int) -> None:
        self.line, self.n = line, n
        self.errors: dict[float, list[Any]] = {e: [] for e in EPSILONS}
        self.plain: list[Any] = []
        self.held: dict[float, list[Any]] = {e: [] for e in EPSILONS}
        self.p_values: dict[float, list[float]] = {e: [] for e in EPSILONS}
        self.seconds, self.passes, self.silent = 0.0, 0, 0

    def run(self, public: DatasetFacts, runs: int) -> None:
        line = self.line
        kind = next(k for k in KINDS if isinstance(line.query, k.query))
        plans = {e: kind.plan(public, line.query, offer(e)) for e in EPSILONS}
        self.passes = plans[1.0].passes
        for seed in range(runs):
            columns = table(self.n, np.random.default_rng([7, self.n, seed]))
            usual = None if line.plain is None else line.plain(columns)
            truth = line.expected(self.n) if line.expected else line.truth
            if usual is not None:
                self.plain.append(usual - truth)
            for epsilon, plan in plans.items():
                start = time.perf_counter()
                result = answer(plan, columns)
                self.seconds += (time.perf_counter() - start) / (runs * len(plans))
                if result is None:
                    self.silent += 1
                    continue
                self._add(epsilon, result, truth, usual)

    def _add(self, epsilon: float, result: Mapping[str, Any], truth: Any, usual: Any) -> None:
        if self.line.p is not None:
            self.p_values[epsilon] += [p for p in self.line.p(result) if p is not None]
        if self.line.ours is None:
            return
        values, low, high = self.line.ours(result)
        self.errors[epsilon].append(values - truth)
        about = usual if self.line.expected else truth
        self.held[epsilon].append(np.where(np.isnan(low), np.nan, (low <= about) & (about <= high)))

    def text(self, epsilon: float) -> str:
        said = []
        if self.errors[epsilon]:
            ours, usual = (
                np.mean(np.square(e), axis=0) for e in (self.errors[epsilon], self.plain)
            )
            said.append(f"{np.median(np.sqrt(ours / usual)):.2f}")
            held = np.array(self.held[epsilon], dtype=float)
            if not np.isnan(held).all():
                said.append(f"{np.nanmean(held):.2f}".lstrip("0"))
        if self.p_values[epsilon]:
            level = np.mean(np.array(self.p_values[epsilon]) < 0.05)
            said.append("level " + f"{level:.2f}".lstrip("0"))
        return ", ".join(said) or "no reply"


def rows() -> Iterator[tuple[Analysis, list[Tally]]]:
    for line in LINES:
        if ASKED and line.name.split(",")[0] not in ASKED:
            continue
        found = []
        for n in SIZES:
            cells = Tally(line, n)
            cells.run(facts(n), RUNS[n] * (3 if line.p and not line.ours and n < SIZES[-1] else 1))
            found.append(cells)
        yield line, found


def main() -> None:
    heads = " | ".join(f"n = {n:,}: ε = .5; 1; 4" for n in SIZES)
    print(f"| analysis | {heads} | seconds at {SIZES[-1]:,} | passes |")
    print("|---" * (len(SIZES) + 3) + "|")
    kept = {}
    for line, found in rows():
        cells = " | ".join("; ".join(c.text(e) for e in EPSILONS) for c in found)
        last = found[-1]
        print(f"| {line.name} | {cells} | {last.seconds:.3f} | {last.passes} |", flush=True)
        kept[line.name] = [[c.text(e) for e in EPSILONS] for c in found]
    print(json.dumps({"benchmark": "every_kind", "lines": kept}))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
