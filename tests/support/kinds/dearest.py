# SPDX-License-Identifier: Apache-2.0
"""The questions that take longest to plan, of every kind, on a table with every sort of column that
makes planning long.
"""

from dataclasses import dataclass

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Query
from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.kinds import KINDS, example
from reticent_server.kinds.anova.kind import Anova
from reticent_server.kinds.binned_residuals.kind import BinnedResiduals
from reticent_server.kinds.correlation.kind import Correlation
from reticent_server.kinds.count.kind import Count
from reticent_server.kinds.crosstab.kind import Crosstab
from reticent_server.kinds.cumulative_incidence.kind import CumulativeIncidence
from reticent_server.kinds.depth_median.query import DepthMedian
from reticent_server.kinds.describe.kind import Describe
from reticent_server.kinds.did.kind import Did
from reticent_server.kinds.discontinuity.kind import Discontinuity
from reticent_server.kinds.event_study.kind import EventStudy
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.hazard_regression.kind import HazardRegression
from reticent_server.kinds.histogram.kind import Histogram
from reticent_server.kinds.hypothesis_test.query import HypothesisTest
from reticent_server.kinds.kruskal.kind import Kruskal
from reticent_server.kinds.log_rank.kind import LogRank
from reticent_server.kinds.mean.kind import Mean
from reticent_server.kinds.median.kind import Median
from reticent_server.kinds.quantile_regression.kind import QuantileRegression
from reticent_server.kinds.quantiles.kind import Quantiles
from reticent_server.kinds.roc.kind import Roc
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.kinds.staggered_did.kind import StaggeredDid
from reticent_server.kinds.study.kind import Study
from reticent_server.kinds.subsample_aggregate.query import SubsampleAggregateQuery
from reticent_server.kinds.sum.kind import Sum
from reticent_server.kinds.survival_curve.kind import SurvivalCurve
from reticent_server.kinds.synthetic.kind import Synthetic
from reticent_server.kinds.treatment_effect.kind import TreatmentEffect

N = 21_613
"""Of a usual table; the work of planning does not depend on it."""

NUMBERS = tuple(f"x{i}" for i in range(12))
SCHEMA = Schema(
    (
        *example.SCHEMA.columns,
        *(Column(name, ColumnKind.NUMERIC, -5, 5) for name in NUMBERS),
        Column("year", ColumnKind.INTEGER, 1990, 2049),
        Column("start", ColumnKind.INTEGER, 1990, 2049, (), ("",)),
        Column("ever", ColumnKind.INTEGER, 0, 2.0**52),
        Column("t", ColumnKind.NUMERIC, 0, 100),
        Column("a", ColumnKind.BOOLEAN, 0, 1),
        Column("g3", ColumnKind.CATEGORICAL, 0, 2, ("a", "b", "c")),
        Column("g10", ColumnKind.CATEGORICAL, 0, 9, tuple(f"l{i}" for i in range(10))),
        Column("g64", ColumnKind.CATEGORICAL, 0, 63, tuple(f"l{i}" for i in range(64))),
        Column("g250", ColumnKind.CATEGORICAL, 0, 249, tuple(f"l{i}" for i in range(250))),
        Column("g1000", ColumnKind.CATEGORICAL, 0, 999, tuple(f"l{i}" for i in range(1000))),
    )
)
FACTS = DatasetFacts("dear", "dear", 1, "v", N, SCHEMA)

POLYNOMIALS = "poly(x0, 10)*poly(x1, 10)*b"  # 242 columns
OTHERS = "poly(x0, 10)*poly(x1, 10)*a"  # the same, where b is the response
KNOTS = ", ".join(f"{-4.5 + 0.45 * i:.2f}" for i in range(20))
SPLINES = " + ".join(f"bs(x{i}, knots=[{KNOTS}])" for i in range(10))
PAIRS = f"({' + '.join(NUMBERS[:6])})*({' + '.join(NUMBERS[6:])}) + g64 + poly(x0, 10):g10"
LONG = " + ".join(f"I(log(6 + x{i % 12})*x{(i + i // 12) % 12}*{i})" for i in range(200))
DEEP = "+".join(f"{'(' * 18}x{i % 12}{')' * 18}" for i in range(190))
WHERE = " and ".join(f"x{i % 12} > {-5 + i / 100}" for i in range(128))
RARE = "x0 > 4.9 and x1 > 4.9"
TENTHS = tuple(i / 10 for i in range(1, 10))
NUMBERS_1000 = tuple(float(i) for i in range(1001))


@dataclass(frozen=True, slots=True)
class DearQuestion:
    """A question and what is dear in it."""

    label: str
    query: Query


def _fits() -> list[Query]:
    texts = (POLYNOMIALS, SPLINES, PAIRS, LONG, DEEP, "g250", "g1000", "x0 + g64*x1")
    linear = [LinearRegression(f"y ~ {text}") for text in texts]
    grouped = [
        LinearRegression("y ~ poly(x0, 10)*x1", by="g64"),
        Glm("b ~ x0 + x1 + g10", "binomial", by="g64"),
        QuantileRegression("y ~ x0 + x1 + g3", TENTHS, by="g64"),
        QuantileRegression("y ~ x0 + x1 + g3", by="g64"),
        HazardRegression("Surv(t, b) ~ x0 + x1 + g10", by="g64"),
        HazardRegression(f"Surv(t, b) ~ {OTHERS}", by="g3"),
        LinearRegression(f"y ~ {POLYNOMIALS}", loss="squared", cluster="g250"),
    ]
    return [
        *linear,
        *grouped,
        LinearRegression(f"y ~ {POLYNOMIALS}", where=RARE, tuning="planned", fit_statistics=True),
        LinearRegression(f"y ~ {POLYNOMIALS}", loss="tukey", where=WHERE),
        LinearRegression(f"y ~ {POLYNOMIALS}", mechanism="gradient_descent"),
        LinearRegression("y ~ x0 + x1 + x2", mechanism="influence"),
        *(
            Glm(f"{y} ~ {OTHERS}", family, tuning=tuning)
            for y, family in (
                ("b", "binomial"),
                ("k", "poisson"),
                ("k", "negative_binomial"),
                ("t", "gamma"),
            )
            for tuning in (None, "planned")
        ),
        Glm("g10 ~ x0 + x1 + x2 + x3 + x4", "multinomial"),
        Glm("g10 ~ " + " + ".join(NUMBERS), "ordinal"),
        Glm("b ~ x0 + x1", "binomial", mechanism="influence"),
        QuantileRegression(f"y ~ {POLYNOMIALS}", TENTHS),
        QuantileRegression("y ~ poly(x0, 10) + x1 + x2 + x3", TENTHS),
        QuantileRegression("y ~ x0 + x1 + g3", TENTHS[:6], by="g10"),
        HypothesisTest(
            f"y ~ {POLYNOMIALS}",
            tuple(f"poly(x0, 10)[{1 + i % 10}] = {i}" for i in range(10)),
            test="lr",
        ),
        HypothesisTest(f"y ~ {POLYNOMIALS}"),
        HypothesisTest(f"y ~ {PAIRS}", test="score"),
        HazardRegression(f"Surv(t, b) ~ {OTHERS}", tuple(float(i) for i in range(1, 21))),
        HazardRegression(f"Surv(t, b) ~ {PAIRS}"),
        SubsampleAggregateQuery(LinearRegression(f"y ~ {POLYNOMIALS}")),
        SubsampleAggregateQuery(Glm(f"b ~ {OTHERS}", "binomial"), bias_correction=True),
        BinnedResiduals("y ~ " + " + ".join(NUMBERS), tuple(0.1 for _ in range(13))),
        Study(("y", *NUMBERS, "poly(x0, 10)", f"bs(x1, knots=[{KNOTS}])", "g10"), "y ~ x0 + x1"),
        Study(("y", *NUMBERS[:2]), by="g64"),
        Study(tuple(f"I(log(6 + x{i % 12})*{i})" for i in range(60))),
        EventStudy("y", "start", "year", before=30, after=30),
        EventStudy("y", "ever", "year"),
        StaggeredDid("y", "start", "year", first=2000, last=2018),
        Did("y", "b", "year", start=2000.0, covariates=POLYNOMIALS.replace("*b", "")),
        Discontinuity("y", "x0", 0.0, 2.0),
        TreatmentEffect("y", "b", " + ".join((*NUMBERS, "g10", "poly(x0, 10)"))),
    ]


def _tables() -> list[Query]:
    return [
        Count(where=WHERE),
        Mean("y", where=WHERE, by="g64"),
        Sum("y", by="g64", where=RARE),
        Median("y", by="g64"),
        *(Median("y", mechanism=m) for m in ("ptr", "smooth_sensitivity")),
        Quantiles("y", tuple(i / 100 for i in range(1, 100)), by="g64"),
        Histogram("y", NUMBERS_1000),
        Crosstab(("g64", "year")),
        Crosstab(("g3", "g10", "b", "k", "a")),
        Crosstab(("g1000", "a")),
        Synthetic(("y", "t", *NUMBERS[:14]), None, 8, WHERE),
        Describe(("y", *NUMBERS), by="g64"),
        Describe(),
        DepthMedian(NUMBERS[:8], eta="private", directions=1000),
        Anova("y", "g64"),
        Kruskal("y", "g64"),
        Roc("y", "b", tuple(i / 10 for i in range(12))),
        Correlation(("y", "x0"), "spearman"),
        SurvivalCurve("t", "b", by="g10"),
        SurvivalCurve("t", "b", None, tuple(i / 2 for i in range(1, 201))),
        CumulativeIncidence("t", "g3", "g10"),
        CumulativeIncidence("t", "g3", None, tuple(i / 2 for i in range(1, 201))),
        LogRank("t", "b", "g10"),
        LogRank("t", "b", "g10", strata="g3"),
    ]


def dear_questions() -> list[DearQuestion]:
    """Of every kind one at least; some are refused, which is to be as quick."""
    firsts = [kind.examples[0] for kind in KINDS if kind.for_analysts]
    return [
        DearQuestion(f"{query.kind}-{i}", query)
        for i, query in enumerate([*_fits(), *_tables(), *firsts])
    ]
