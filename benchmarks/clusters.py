# SPDX-License-Identifier: Apache-2.0
"""Coverage and width of errors by cluster.

`python -m benchmarks.clusters DIR [NAME …]`, and without DIR of simulated tables. DIR holds, as CSV
with numbered clusters, star.csv (star of mlmRev: 24,000 results in 80 schools), chem97.csv (Chem97
of mlmRev: 31,022 A-level results in 131 local authorities), evals.csv (InstEval of lme4: 73,421
evaluations in 14 departments), adult.csv (the UCI repository's Adult: 30,718 people in 14
occupations and 16 levels of education), rwm.csv (rwm5yr of COUNT: visits to a doctor of 19,609
German person-years at 40 ages), wages.csv (54,738 earners of the Current Population Survey, wages
in thousands, at ages 20 to 64) and flights.csv (nycflights of openintro: 32,735 flights; late: more
than a quarter of an hour). A bootstrap sample draws as many clusters as there are, with
replacement, and a cluster that is drawn twice is two; the profile is that of the table's own
quantiles. Target: the textbook's coefficients of the whole table. Beside it the textbook's errors
on the same sample: CR1 of statsmodels (that of sandwich::vcovCL) with t of G − 1 degrees of
freedom, and errors by row. Width: median over the textbook's by cluster. Planned and released by
the server's own code.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.api as sm
from scipy.stats import t as student

from benchmarks.named_tests import offer
from reticent_server.domain.facts import PROFILE_PROBABILITIES, ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.query import Query
from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.kinds import registry
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.shared.linear.query import LinearRegression
from support.fits.regressions import drive, whole

REPS = 24  # a coverage of .95 has the standard error .04, over three or four coefficients .02
EPSILONS = (1.0, 4.0)
DISPERSION = 2.0  # given, of negative binomial counts


@dataclass(frozen=True, slots=True)
class ClusterCase:
    """A regression on a table; bounds from common knowledge, (0, 1): a dummy. cluster: one column,
    or two. family: of a generalised linear model, empty for least squares.
    """

    name: str
    y: str
    terms: tuple[str, ...]
    bounds: dict[str, tuple[float, float]]
    cluster: tuple[str, ...]
    family: str = ""

    @property
    def query(self) -> Query:
        """Of maximum likelihood, and robust with a given dispersion of negative binomial counts."""
        formula = f"{self.y} ~ {' + '.join(self.terms)}"
        cluster: Any = self.cluster[0] if len(self.cluster) == 1 else self.cluster
        if not self.family:
            return LinearRegression(formula, loss="squared", cluster=cluster)
        if self.family == "negative_binomial":
            return Glm(formula, self.family, dispersion=DISPERSION, cluster=cluster)
        return Glm(formula, self.family, target="likelihood", cluster=cluster)  # type: ignore[arg-type]

    def columns(self, clusters: tuple[int, ...]) -> tuple[Column, ...]:
        """The schema's, clusters last."""
        return (
            *(_column(name, *ends) for name, ends in self.bounds.items()),
            *(_levels(name, size) for name, size in zip(self.cluster, clusters, strict=True)),
        )

    def groups(self, table: dict[str, Any]) -> Any:
        """(n,) or (n, 2) codes."""
        codes = np.column_stack([table[name].astype(int) for name in self.cluster])
        return codes[:, 0] if len(self.cluster) == 1 else codes

    def fit(self, table: dict[str, Any], **more: Any) -> Any:
        """The textbook's."""
        X = np.column_stack([np.ones(len(table[self.y])), *(table[name] for name in self.terms)])
        if self.family == "binomial":
            return sm.Logit(table[self.y], X).fit(disp=0, **more)
        if self.family:
            law = {
                "poisson": sm.families.Poisson(),
                "gamma": sm.families.Gamma(sm.families.links.Log()),
                "negative_binomial": sm.families.NegativeBinomial(alpha=DISPERSION),
            }[self.family]
            return sm.GLM(table[self.y], X, law).fit(**more)
        return sm.OLS(table[self.y], X).fit(**more)


CASES = (
    ClusterCase(
        "star",
        "math",
        ("small", "free", "exp"),
        {"math": (300, 800), "small": (0, 1), "free": (0, 1), "exp": (0, 45)},
        ("sch",),
    ),
    ClusterCase(
        "chem97",
        "score",
        ("female", "age", "gcse"),
        {"score": (0, 10), "female": (0, 1), "age": (-6, 5), "gcse": (0, 8)},
        ("lea",),
    ),
    ClusterCase(
        "chem97",
        "top",
        ("female", "age", "gcse"),
        {"top": (0, 1), "female": (0, 1), "age": (-6, 5), "gcse": (0, 8)},
        ("lea",),
        "binomial",
    ),
    ClusterCase(
        "evals",
        "y",
        ("studage", "lectage", "service"),
        {"y": (1, 5), "studage": (2, 8), "lectage": (1, 6), "service": (0, 1)},
        ("dept",),
    ),
    ClusterCase(
        "adult",
        "hours",
        ("age", "female", "educ"),
        {"hours": (1, 99), "age": (17, 90), "female": (0, 1), "educ": (1, 16)},
        ("occupation",),
    ),
    ClusterCase(
        "adult",
        "rich",
        ("age", "female", "educ"),
        {"rich": (0, 1), "age": (17, 90), "female": (0, 1), "educ": (1, 16)},
        ("occupation",),
        "binomial",
    ),
    *(
        ClusterCase(
            "rwm",
            "docvis",
            ("outwork", "female", "kids"),
            {"docvis": (0, 150), "outwork": (0, 1), "female": (0, 1), "kids": (0, 1)},
            ("age",),
            family,
        )
        for family in ("poisson", "negative_binomial")
    ),
    ClusterCase(
        "wages",
        "wage",
        ("educ", "female"),
        {"wage": (1, 2_000), "educ": (0, 21), "female": (0, 1)},
        ("age",),
        "gamma",
    ),
    ClusterCase(
        "adult",
        "hours",
        ("age", "female"),
        {"hours": (1, 99), "age": (17, 90), "female": (0, 1)},
        ("occupation",),
        "poisson",
    ),
    *(
        ClusterCase(
            "adult",
            "hours",
            ("age", "female"),
            {"hours": (1, 99), "age": (17, 90), "female": (0, 1)},
            ("occupation", "educ"),
            family,
        )
        for family in ("", "poisson")
    ),
    ClusterCase(
        "flights",
        "late",
        ("distance", "hour"),
        {"late": (0, 1), "distance": (0, 5_000), "hour": (0, 24)},
        ("carrier", "month"),
        "binomial",
    ),
)


def _column(name: str, lower: float, upper: float) -> Column:
    kind = ColumnKind.BOOLEAN if (lower, upper) == (0, 1) else ColumnKind.NUMERIC
    return Column(name, kind, lower, upper)


def _levels(name: str, size: int) -> Column:
    levels = tuple(f"c{k}" for k in range(size))
    return Column(name, ColumnKind.CATEGORICAL, 0, size - 1, levels)


def facts_of(
    case: ClusterCase, table: dict[str, Any], n: int, clusters: tuple[int, ...]
) -> DatasetFacts:
    """With the profile of a table's own quantiles."""
    columns = case.columns(clusters)
    profile = {
        c.name: ColumnProfile(
            counts=(float(np.sum(table[c.name] == 0)), float(table[c.name].sum()))
        )
        if c.kind is ColumnKind.BOOLEAN
        else ColumnProfile(quantiles=tuple(np.quantile(table[c.name], PROFILE_PROBABILITIES)))
        for c in columns[: len(case.bounds)]
    }
    return DatasetFacts("t", "t", 1, "version", n, Schema(columns), Profile(profile))


def resampled(
    table: dict[str, Any], cluster: tuple[str, ...], rng: np.random.Generator
) -> dict[str, Any]:
    """As many clusters, drawn with replacement and numbered anew. Of two columns the levels of each
    are drawn apart, and a record is drawn as often as both of its levels together (Owen 2007).
    """
    index, codes = np.arange(len(table[cluster[0]])), dict[str, Any]()
    for name in cluster:
        own = table[name].astype(int)[index]
        rows = [np.flatnonzero(own == g) for g in range(int(table[name].max()) + 1)]
        drawn = rng.integers(0, len(rows), len(rows))
        kept = np.concatenate([rows[g] for g in drawn])
        sizes = [len(rows[g]) for g in drawn]
        index, codes = index[kept], {other: code[kept] for other, code in codes.items()}
        codes[name] = np.repeat(np.arange(len(rows), dtype=float), sizes)
    return {name: values[index] for name, values in table.items()} | codes


def measured(
    case: ClusterCase, samples: Any, truth: Any, clusters: tuple[int, ...], public: dict[str, Any]
) -> None:
    """Prints a line for each ε."""
    samples = list(samples)
    by_row, by_cluster = [], []
    for sample in samples:
        groups = {"groups": case.groups(sample)}
        row = case.fit(sample, cov_type="HC1")
        own = case.fit(sample, cov_type="cluster", cov_kwds=groups)
        by_row.append((row.params, 1.96 * row.bse))
        by_cluster.append((own.params, student.ppf(0.975, min(clusters) - 1) * own.bse))
    said = [f"{np.mean([np.abs(b - truth) < h for b, h in x]):.2f}" for x in (by_row, by_cluster)]
    wider = np.nanmedian([o[1] / r[1] for o, r in zip(by_cluster, by_row, strict=True)], axis=0)
    print(
        f"{case.name} {case.y} {case.family}: n = {len(samples[0][case.y]):,}, G = {clusters};",
        f"textbook covers by row {said[0]}, by cluster {said[1]}; width by cluster over by row",
        np.round(wider, 1),
    )
    for epsilon in EPSILONS:
        hits, widths, given = [], [], []
        for sample, (_, half) in zip(samples, by_cluster, strict=True):
            facts = facts_of(case, public, len(sample[case.y]), clusters)
            found = drive(
                registry.plan(facts, case.query, offer(epsilon)).run(), whole(sample)
            ).result
            for k, ends in enumerate(found["confidence_intervals"]):
                given.append(ends[0] is not None)
                if ends[0] is not None:
                    hits.append(ends[0] <= truth[k] <= ends[1])
                    widths.append((ends[1] - ends[0]) / 2 / half[k])
        print(
            f"  epsilon {epsilon:g}: covered {np.mean(hits):.3f}, given {np.mean(given):.2f},",
            f"width {np.nanmedian(widths):.2f}",
        )


def of_table(case: ClusterCase, directory: Path, rng: np.random.Generator) -> None:
    frame = pd.read_csv(directory / f"{case.name}.csv")
    names = dict.fromkeys((*case.bounds, *case.cluster))
    table = {name: frame[name].to_numpy() for name in names}
    for name in case.cluster:
        table[name] = np.unique(table[name], return_inverse=True)[1].astype(float)
    for name, (lower, upper) in case.bounds.items():
        table[name] = np.clip(table[name].astype(float), lower, upper)
    samples = (resampled(table, case.cluster, rng) for _ in range(REPS))
    clusters = tuple(int(table[name].max()) + 1 for name in case.cluster)
    measured(case, samples, case.fit(table).params, clusters, table)


SIMULATED = ClusterCase(
    "simulated", "y", ("x", "z"), {"y": (-15, 15), "x": (-5, 5), "z": (-5, 5)}, ("g",)
)


def simulated(
    n: int, G: int, icc: float, rng: np.random.Generator, *, skewed: bool = False
) -> dict[str, Any]:
    """y = 1 + x + z + error of variance 1, of which a share `icc` is common to a cluster; half of
    the variance of x is between clusters, none of z's; clusters of unequal sizes (Dirichlet, 3)."""
    g = rng.choice(G, n, p=rng.dirichlet(np.full(G, 3.0)))
    x = np.sqrt(0.5) * (rng.normal(size=G)[g] + rng.normal(size=n))
    z, own = rng.normal(size=n), rng.normal(size=n)
    if skewed:
        own = rng.exponential(size=n) - 1
    error = np.sqrt(icc) * rng.normal(size=G)[g] + np.sqrt(1 - icc) * own
    return {
        "y": np.clip(1 + x + z + error, -15, 15),
        "x": np.clip(x, -5, 5),
        "z": np.clip(z, -5, 5),
        "g": g.astype(float),
    }


LAWS = (
    (20_000, 50, 0.0, False),
    (20_000, 50, 0.02, False),
    (20_000, 50, 0.1, False),
    (20_000, 50, 0.02, True),
    (100_000, 20, 0.02, False),
    (100_000, 50, 0.0, False),
    (100_000, 50, 0.02, False),
)


def main() -> None:
    rng, asked = np.random.default_rng(1), sys.argv[1:]
    for case in CASES if asked else ():
        if case.name in asked[1:] or not asked[1:]:
            of_table(case, Path(asked[0]), rng)
    for n, G, icc, skewed in () if asked else LAWS:
        print(f"icc {icc:g}{', skewed' if skewed else ''}")
        samples = [simulated(n, G, icc, rng, skewed=skewed) for _ in range(REPS)]
        measured(SIMULATED, samples, np.ones(3), (G,), samples[0])


if __name__ == "__main__":
    main()
