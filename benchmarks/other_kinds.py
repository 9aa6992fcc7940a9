# SPDX-License-Identifier: Apache-2.0
"""Kinds other than regressions over real tables: do the intervals hold what the textbook estimates?

    python -m benchmarks other_kinds          (OTHER_REPS=24, OTHER_ONLY=correlation, OTHER_EPS=1)

Tables are those of benchmarks.real_tables; samples are bootstrap samples of min(N, 20,000) records
with a profile at ε = .5 each, and truths are figures of the whole table. One line a case: coverage
of the textbook's figure by the intervals given (the least of a case's figures), the share of
intervals given, the mean error, half-widths over those of the textbook on such a sample (the spread
of the figure over bootstrap samples), and the share of replies that warn.
"""

import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import statsmodels.api as sm
from scipy import stats
from scipy.special import ndtri

from benchmarks.gauntlet.frame import Frame
from benchmarks.real_tables.fast import numpy_noise
from benchmarks.real_tables.models import MOST, read_folder
from reticent._study.correlations import correlation
from reticent._study.moments import Moments
from reticent_server.domain.query import Query
from reticent_server.domain.steps import FloatArray
from reticent_server.kinds.correlation.kind import Correlation
from reticent_server.kinds.describe.kind import Describe
from reticent_server.kinds.did.kind import Did
from reticent_server.kinds.discontinuity.kind import Discontinuity
from reticent_server.kinds.mean.kind import Mean
from reticent_server.kinds.quantile_regression.kind import QuantileRegression
from reticent_server.kinds.study.kind import Study

REPS = int(os.environ.get("OTHER_REPS", "24"))
ONLY = os.environ.get("OTHER_ONLY", "")
EPSILONS = tuple(float(e) for e in os.environ.get("OTHER_EPS", "1").split())
_RESAMPLES = 100  # of the textbook's figure: its spread is then known to 7 %
_ALL = 2.0  # the width of an interval of a correlation that claims nothing
_Z = float(ndtri(0.975))
Arrays = Mapping[str, FloatArray]
Figures = Mapping[str, float]
Told = Mapping[str, tuple[float, float, float]]


@dataclass(frozen=True, slots=True)
class TextbookCase:
    """A question of a table. truth: its figures by name; told: the same of a result, with the ends
    of the intervals, NaN where none is given.
    """

    name: str
    table: str
    query: Query
    truth: Callable[[Arrays], Figures]
    told: Callable[[Mapping[str, Any]], Told]


def of_test(result: Mapping[str, Any]) -> Told:
    low, high = result["effect_interval"]
    if high - low >= _ALL:  # nothing is claimed
        low, high = np.nan, np.nan
    return {"effect": (result["effect"], low, high)}


def of_mean(result: Mapping[str, Any]) -> Told:
    return {"mean": (result["value"], *result["confidence_interval"])}


def of_describe(result: Mapping[str, Any]) -> Told:
    group = result["columns"][0]["groups"][0]
    names = {"mean": "mean", "sd": "standard_deviation"}
    return {k: (group[x]["value"], *group[x]["confidence_interval"]) for k, x in names.items()}


def of_fit(*terms: str) -> Callable[[Mapping[str, Any]], Told]:
    """The coefficients of these terms."""

    def told(result: Mapping[str, Any]) -> Told:
        fit = result.get("fits", [result.get("main") or result])[0]
        ends = np.array(fit["confidence_intervals"], dtype=float).reshape(-1, 2)
        at = {name: fit["terms"].index(name) for name in terms}
        return {k: (fit["coefficients"][j], ends[j, 0], ends[j, 1]) for k, j in at.items()}

    return told


def of_study(*pair: str) -> Callable[[Mapping[str, Any]], Told]:
    """The correlation that the client makes of a study."""

    def told(result: Mapping[str, Any]) -> Told:
        moments = Moments.read(result, result)
        found = correlation(moments, *map(moments.names.index, pair))
        low, high = found.conf_int()
        if high - low >= _ALL:
            low, high = np.nan, np.nan
        return {"effect": (found.value, low, high)}

    return told


def least_squares(y: str, *columns: str) -> Callable[[Arrays], Figures]:
    def truth(t: Arrays) -> Figures:
        X = sm.add_constant(np.column_stack([t[k] for k in columns]))
        beta = np.linalg.lstsq(X, t[y], rcond=None)[0]
        return dict(zip(columns, beta[1:].tolist(), strict=True))

    return truth


def median_fit(y: str, *columns: str) -> Callable[[Arrays], Figures]:
    def truth(t: Arrays) -> Figures:
        X = sm.add_constant(np.column_stack([t[k] for k in columns]))
        beta = sm.QuantReg(t[y], X).fit(0.5).params
        return dict(zip(columns, np.asarray(beta)[1:].tolist(), strict=True))

    return truth


def change(y: str, treated: str, time: str) -> Callable[[Arrays], Figures]:
    def truth(t: Arrays) -> Figures:
        d, p = t[treated] > 0, t[time] > 0
        means = [
            [float(t[y][(d == a) & (p == b)].mean()) for b in (False, True)] for a in (True, False)
        ]
        (a, b), (c, e) = means
        return {f"did({treated})": b - a - (e - c)}

    return truth


def jump(y: str, running: str, cutoff: float, bandwidth: float) -> Callable[[Arrays], Figures]:
    def truth(t: Arrays) -> Figures:
        x = t[running]
        w = np.maximum(0, 1 - np.abs(x - cutoff) / bandwidth)
        X = np.column_stack([np.ones_like(x), x >= cutoff, x, np.maximum(x - cutoff, 0)])
        beta = sm.WLS(t[y][w > 0], X[w > 0], weights=w[w > 0]).fit().params
        return {f"{running} >= {cutoff:g}": float(beta[1])}

    return truth


def pearson(x: str, y: str) -> Callable[[Arrays], Figures]:
    return lambda t: {"effect": float(np.corrcoef(t[x], t[y])[0, 1])}


def spread(x: str) -> Callable[[Arrays], Figures]:
    return lambda t: {"mean": float(t[x].mean()), "sd": float(t[x].std(ddof=1))}


def correlations() -> Iterator[TextbookCase]:
    pairs = {
        "k401": [("nettfa", "inc"), ("age", "inc")],
        "flights": [("dep_delay", "arr_delay"), ("distance", "air_time")],
        "loans": [("annual_income", "total_credit_limit"), ("loan_amount", "interest_rate")],
        "ames": [("Sale_Price", "Gr_Liv_Area"), ("Lot_Area", "Sale_Price")],
        "cps1988": [("wage", "education")],
        "injury": [("durat", "prewage")],
        "star": [("read", "math")],
        "college": [("score", "wage")],
    }
    for table, asked in pairs.items():
        for x, y in asked:
            yield TextbookCase(
                f"correlation {x}, {y}", table, Correlation((x, y)), pearson(x, y), of_test
            )
    x, y = "dep_delay", "arr_delay"
    yield TextbookCase(
        f"correlation {x}, {y}, Kendall",
        "flights",
        Correlation((x, y), "kendall"),
        lambda t: {"effect": float(stats.kendalltau(t[x], t[y]).statistic)},
        of_test,
    )


def cases() -> Iterator[TextbookCase]:
    """All of them."""
    effect = "did(highearn)"
    yield TextbookCase(
        "did weeks",
        "injury",
        Did("durat", "highearn", "afchnge", start=1),
        change("durat", "highearn", "afchnge"),
        of_fit(effect),
    )
    for table, column in (("k401", "nettfa"), ("loans", "annual_income"), ("flights", "dep_delay")):
        yield TextbookCase(f"mean {column}", table, Mean(column), spread(column), of_mean)
        yield TextbookCase(
            f"describe {column}", table, Describe((column,)), spread(column), of_describe
        )
    yield from correlations()
    studied = {
        "k401": ("nettfa", "inc", "age"),
        "cps1988": ("wage", "education", "experience"),
        "loans": ("interest_rate", "annual_income", "debt_to_income"),
        "flights": ("arr_delay", "dep_delay", "distance"),
    }
    for table, columns in studied.items():
        y, *x = columns
        main = f"{y} ~ {' + '.join(x)}"
        yield TextbookCase(
            f"study {main}", table, Study(columns, main=main), least_squares(*columns), of_fit(*x)
        )
        pair = columns[:2]
        yield TextbookCase(
            f"study's correlation {', '.join(pair)}",
            table,
            Study(columns),
            pearson(*pair),
            of_study(*pair),
        )
        yield TextbookCase(
            f"median {main}", table, QuantileRegression(main, 0.5), median_fit(*columns), of_fit(*x)
        )
    for table, y, x, at, width in (
        ("k401", "inc", "age", 45.0, 12.0),
        ("flights", "dep_delay", "hour", 14.0, 6.0),
    ):
        query = Discontinuity(y, x, at, width)
        yield TextbookCase(
            f"jump of {y}", table, query, jump(y, x, at, width), of_fit(f"{x} >= {at:g}")
        )


@cache
def frames() -> Callable[[str], Frame]:
    return cache(read_folder().frame)


def columns_of(query: Query, frame: Frame) -> set[str]:
    """The columns that a question names."""
    said = repr(query)
    return {name for name in frame.columns if name in said}


def replies(
    case: TextbookCase, frame: Frame, n: int, epsilon: float
) -> Iterator[Mapping[str, Any]]:
    for k in range(REPS):
        rng = np.random.default_rng((zlib.crc32(case.name.encode()), k))
        with numpy_noise(rng, on=True):
            table = frame.sample(rng, n)
            result = table.reply(table.plan(case.query, epsilon))
            table.close()
        if result is not None:
            yield result


def line(case: TextbookCase, epsilon: float) -> str:
    """What the intervals of a case did."""
    whole = frames()(case.table)
    frame = whole.of(columns_of(case.query, whole))
    n = min(frame.n, MOST)
    truth, found = case.truth(frame.arrays), list(replies(case, frame, n, epsilon))
    told = [case.told(result) for result in found]
    names = list(told[0])
    true = np.array([truth[k] for k in names])
    value, low, high = np.moveaxis(np.array([[t[k] for k in names] for t in told]), 2, 0)
    given = np.isfinite(low)
    held = np.where(given, (low <= true) & (true <= high), np.nan)
    rng = np.random.default_rng(1)
    slow = "median" in case.name or "Kendall" in case.name
    again = []
    for _ in range(_RESAMPLES // 5 if slow else _RESAMPLES):
        index = rng.choice(frame.n, n)
        drawn = case.truth({k: x[index] for k, x in frame.arrays.items()})
        again.append([drawn[k] for k in names])
    own = np.std(again, axis=0)
    width = (high - low) / (2 * _Z * own)
    cells = [
        _least(held),
        f"{given.mean():.2f}",
        f"{np.nanmedian(width):.2f}" if given.any() else "–",
        f"{float(np.abs((value.mean(axis=0) - true) / own).max()):.1f}",
        f"{np.mean([_warns(result) for result in found]):.2f}",
        " ".join(f"{x:.3g}" for x in true),
        " ".join(f"{x:.3g}" for x in value.mean(axis=0)),
    ]
    return f"| {case.name} | `{case.table}` | {n:,} | {epsilon:g} | {' | '.join(cells)} |"


def _warns(result: Mapping[str, Any]) -> bool:
    """Whether the reply, or the fit in it, has a warning."""
    return bool(result.get("warnings") or result.get("fits", [{}])[0].get("warnings"))


def _least(held: FloatArray) -> str:
    known = ~np.isnan(held).all(axis=0)
    return f"{np.nanmean(held[:, known], axis=0).min():.2f}" if known.any() else "–"


def main() -> None:
    print(
        "| question | table | n | ε | covered | given | width | error | warned | textbook | mean "
        "reply |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for case in cases():
        if ONLY in case.name:
            for epsilon in EPSILONS:
                print(line(case, epsilon), flush=True)


if __name__ == "__main__":
    main()
