# SPDX-License-Identifier: Apache-2.0
"""The methods of a data set, one for each kind of question.

Made by tools/client_methods.py from the server's questions.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from reticent._checks import FLAG, HAZARDS, NAME, NUMBER, QUERY, TEXT, WHOLE, either, several, word
from reticent._questions import Field, Question
from reticent._spending import DryRun, Spending, Widths

if TYPE_CHECKING:
    from reticent._release import NoReply
    from reticent.kinds.binned_residuals import BinnedResiduals
    from reticent.kinds.crosstab import Crosstab
    from reticent.kinds.cumulative_incidence import CumulativeIncidences
    from reticent.kinds.depth_median import DepthMedian
    from reticent.kinds.describe import Description
    from reticent.kinds.did import DidResults
    from reticent.kinds.discontinuity import DiscontinuityResults
    from reticent.kinds.event_study import EventStudyResults
    from reticent.kinds.group_hazards import GroupHazards
    from reticent.kinds.group_histograms import GroupHistograms
    from reticent.kinds.group_quantile_regressions import GroupQuantileRegressions
    from reticent.kinds.group_quantiles import GroupQuantiles
    from reticent.kinds.hazard_regression import HazardResults
    from reticent.kinds.histogram import Histogram
    from reticent.kinds.hypothesis_test import TestResults
    from reticent.kinds.location_scale import LocationScaleResults
    from reticent.kinds.log_rank import LogRankTest
    from reticent.kinds.quantile_regression import QuantileRegressionResults
    from reticent.kinds.quantiles import Quantiles
    from reticent.kinds.roc import RocCurve
    from reticent.kinds.staggered_did import StaggeredDidResults
    from reticent.kinds.study import Study
    from reticent.kinds.survival_curve import SurvivalCurves
    from reticent.kinds.synthetic import SyntheticTables
    from reticent.kinds.treatment_effect import TreatmentEffectResults
    from reticent.results.estimate import Estimate
    from reticent.results.group_estimates import GroupEstimates
    from reticent.results.group_regressions import GroupRegressions
    from reticent.results.group_statistics import GroupStatistics
    from reticent.results.named_test import NamedTest
    from reticent.results.regression import RegressionResults
    from reticent.results.statistic import Statistic

QUESTIONS: Mapping[str, Question] = {
    "count": Question(
        "count",
        (
            Field("where", TEXT, None),
            Field("by", TEXT, None, keyword=True),
            Field("per", TEXT, None, keyword=True),
        ),
    ),
    "mean": Question(
        "mean",
        (
            Field("column", TEXT),
            Field("where", TEXT, None),
            Field("by", TEXT, None, keyword=True),
            Field("weights", TEXT, None, keyword=True),
            Field("cluster", TEXT, None, keyword=True),
            Field("strata", TEXT, None, keyword=True),
        ),
    ),
    "sum": Question(
        "sum",
        (
            Field("column", TEXT),
            Field("where", TEXT, None),
            Field("by", TEXT, None, keyword=True),
            Field("per", TEXT, None, keyword=True),
            Field("weights", TEXT, None, keyword=True),
            Field("cluster", TEXT, None, keyword=True),
            Field("strata", TEXT, None, keyword=True),
        ),
    ),
    "describe": Question(
        "describe",
        (
            Field("columns", several(NAME), None),
            Field("by", TEXT, None),
            Field("where", TEXT, None),
        ),
    ),
    "histogram": Question(
        "histogram",
        (
            Field("column", TEXT),
            Field("bins", several(NUMBER), None),
            Field("where", TEXT, None),
            Field("by", TEXT, None, keyword=True),
            Field("per", TEXT, None, keyword=True),
        ),
    ),
    "crosstab": Question(
        "crosstab",
        (
            Field("columns", several(NAME)),
            Field("where", TEXT, None),
            Field("per", TEXT, None, keyword=True),
        ),
    ),
    "synthetic": Question(
        "synthetic",
        (
            Field("columns", several(NAME)),
            Field("cliques", several(several(NAME)), None),
            Field("bins", WHOLE, 8),
            Field("where", TEXT, None),
        ),
    ),
    "quantiles": Question(
        "quantiles",
        (
            Field("column", TEXT),
            Field("probabilities", several(NUMBER), [0.25, 0.5, 0.75]),
            Field("where", TEXT, None),
            Field("by", TEXT, None, keyword=True),
            Field("per", TEXT, None, keyword=True),
            Field("intervals", FLAG, False, keyword=True),
            Field("weights", TEXT, None, keyword=True),
        ),
    ),
    "iqr": Question(
        "iqr",
        (
            Field("column", TEXT),
            Field("mechanism", TEXT, "quantiles"),
            Field("where", TEXT, None),
            Field("per", TEXT, None, keyword=True),
            Field("intervals", FLAG, False, keyword=True),
        ),
    ),
    "median": Question(
        "median",
        (
            Field("column", TEXT),
            Field("mechanism", TEXT, "exponential"),
            Field("where", TEXT, None),
            Field("by", TEXT, None, keyword=True),
            Field("per", TEXT, None, keyword=True),
            Field("intervals", FLAG, False, keyword=True),
            Field("weights", TEXT, None, keyword=True),
        ),
    ),
    "m_estimate": Question(
        "m_estimate",
        (
            Field("column", TEXT),
            Field("tuning", NUMBER, None),
            Field("base", TEXT, "uniform"),
            Field("lower", NUMBER, None),
            Field("upper", NUMBER, None),
            Field("psi", TEXT, "huber", keyword=True),
        ),
    ),
    "location_scale": Question(
        "location_scale",
        (
            Field("column", TEXT),
            Field("where", TEXT, None),
            Field("tuning", either(NUMBER, word("planned")), None, keyword=True),
            Field("mechanism", TEXT, "newton", keyword=True),
            Field("calibration", TEXT, None, keyword=True),
            Field("confidence_level", NUMBER, 0.95, keyword=True),
        ),
    ),
    "depth_median": Question(
        "depth_median",
        (
            Field("columns", several(NAME)),
            Field("scale", TEXT, "trimmed"),
            Field("eta", either(NUMBER, word("private")), None),
            Field("directions", WHOLE, None),
        ),
    ),
    "linear_regression": Question(
        "linear_regression",
        (
            Field("formula", TEXT),
            Field("where", TEXT, None),
            Field("loss", TEXT, "huber", keyword=True),
            Field("tuning", either(NUMBER, word("planned")), None, keyword=True),
            Field("ridge", NUMBER, None, keyword=True),
            Field("mechanism", TEXT, "newton", keyword=True),
            Field("calibration", TEXT, None, keyword=True),
            Field("confidence_level", NUMBER, 0.95, keyword=True),
            Field("weights", TEXT, None, keyword=True),
            Field("effects", TEXT, None, keyword=True),
            Field("by", TEXT, None, keyword=True),
            Field("fit_statistics", FLAG, False, keyword=True),
            Field("working_correlation", NUMBER, None, keyword=True),
            Field("cluster", either(TEXT, several(NAME)), None, keyword=True),
            Field("strata", TEXT, None, keyword=True),
        ),
    ),
    "did": Question(
        "did",
        (
            Field("y", TEXT),
            Field("treated", TEXT),
            Field("time", TEXT),
            Field("start", NUMBER, None),
            Field("covariates", TEXT, None),
            Field("where", TEXT, None),
            Field("loss", TEXT, "squared", keyword=True),
            Field("confidence_level", NUMBER, 0.95, keyword=True),
        ),
    ),
    "event_study": Question(
        "event_study",
        (
            Field("y", TEXT),
            Field("treatment_time", TEXT),
            Field("time", TEXT),
            Field("before", WHOLE, 4),
            Field("after", WHOLE, 4),
            Field("never", NUMBER, None),
            Field("covariates", TEXT, None),
            Field("where", TEXT, None),
            Field("loss", TEXT, "squared", keyword=True),
            Field("confidence_level", NUMBER, 0.95, keyword=True),
        ),
    ),
    "staggered_did": Question(
        "staggered_did",
        (
            Field("y", TEXT),
            Field("treatment_time", TEXT),
            Field("time", TEXT),
            Field("never", NUMBER, None),
            Field("first", WHOLE, None),
            Field("last", WHOLE, None),
            Field("where", TEXT, None),
            Field("confidence_level", NUMBER, 0.95, keyword=True),
        ),
    ),
    "glm": Question(
        "glm",
        (
            Field("formula", TEXT),
            Field("family", TEXT),
            Field("where", TEXT, None),
            Field("tuning", either(NUMBER, word("planned")), None, keyword=True),
            Field("mechanism", TEXT, "newton", keyword=True),
            Field("calibration", TEXT, None, keyword=True),
            Field("confidence_level", NUMBER, 0.95, keyword=True),
            Field("dispersion", NUMBER, None, keyword=True),
            Field("link", TEXT, None, keyword=True),
            Field("weights", TEXT, None, keyword=True),
            Field("offset", TEXT, None, keyword=True),
            Field("exposure", TEXT, None, keyword=True),
            Field("by", TEXT, None, keyword=True),
            Field("fit_statistics", FLAG, False, keyword=True),
            Field("target", TEXT, "robust", keyword=True),
            Field("cluster", either(TEXT, several(NAME)), None, keyword=True),
            Field("strata", TEXT, None, keyword=True),
        ),
    ),
    "discontinuity": Question(
        "discontinuity",
        (
            Field("y", TEXT),
            Field("running", TEXT),
            Field("cutoff", NUMBER),
            Field("bandwidth", NUMBER),
            Field("where", TEXT, None),
            Field("confidence_level", NUMBER, 0.95, keyword=True),
            Field("order", WHOLE, 1, keyword=True),
        ),
    ),
    "treatment_effect": Question(
        "treatment_effect",
        (
            Field("y", TEXT),
            Field("treatment", TEXT),
            Field("covariates", TEXT),
            Field("estimand", TEXT, "ate"),
            Field("estimator", TEXT, "aipw"),
            Field("where", TEXT, None),
            Field("propensity", several(NUMBER), None, keyword=True),
            Field("propensity_noise", several(several(NUMBER)), None, keyword=True),
            Field("outcome", several(NUMBER), None, keyword=True),
            Field("outcome_covariance", several(several(NUMBER)), None, keyword=True),
            Field("outcome_link", TEXT, "identity", keyword=True),
            Field("trim", NUMBER, 0.05, keyword=True),
            Field("confidence_level", NUMBER, 0.95, keyword=True),
        ),
    ),
    "quantile_regression": Question(
        "quantile_regression",
        (
            Field("formula", TEXT),
            Field("tau", either(NUMBER, several(NUMBER)), 0.5),
            Field("where", TEXT, None),
            Field("confidence_level", NUMBER, 0.95, keyword=True),
            Field("by", TEXT, None, keyword=True),
            Field("weights", TEXT, None, keyword=True),
        ),
    ),
    "hypothesis_test": Question(
        "hypothesis_test",
        (
            Field("formula", TEXT),
            Field("hypothesis", several(TEXT), None),
            Field("test", TEXT, "wald"),
            Field("family", TEXT, None),
            Field("where", TEXT, None),
            Field("tuning", NUMBER, None, keyword=True),
            Field("mechanism", TEXT, "newton", keyword=True),
            Field("confidence_level", NUMBER, 0.95, keyword=True),
            Field("dispersion", NUMBER, None, keyword=True),
            Field("loss", TEXT, "huber", keyword=True),
        ),
    ),
    "binned_residuals": Question(
        "binned_residuals",
        (
            Field("formula", TEXT),
            Field("coefficients", several(NUMBER)),
            Field("link", TEXT, "identity"),
            Field("scale", NUMBER, None),
            Field("variance_power", NUMBER, 0.0),
            Field("dispersion", NUMBER, 0.0),
            Field("bins", several(NUMBER), None),
            Field("where", TEXT, None),
        ),
    ),
    "study": Question(
        "study",
        (
            Field("variables", several(TEXT)),
            Field("main", TEXT, None),
            Field("by", TEXT, None),
            Field("where", TEXT, None),
            Field("missing", TEXT, "mask", keyword=True),
            Field("effects", TEXT, None, keyword=True),
            Field("confidence_level", NUMBER, 0.95, keyword=True),
        ),
    ),
    "subsample_aggregate": Question(
        "subsample_aggregate",
        (
            Field("model", QUERY),
            Field("blocks", WHOLE, None),
            Field("parameter_bounds", several(several(NUMBER)), None),
            Field("bias_correction", FLAG, True),
            Field("confidence_level", NUMBER, 0.95, keyword=True),
        ),
    ),
    "survival_curve": Question(
        "survival_curve",
        (
            Field("time", TEXT),
            Field("event", TEXT),
            Field("by", TEXT, None),
            Field("cuts", several(NUMBER), None),
            Field("where", TEXT, None),
        ),
    ),
    "cumulative_incidence": Question(
        "cumulative_incidence",
        (
            Field("time", TEXT),
            Field("event", TEXT),
            Field("by", TEXT, None),
            Field("cuts", several(NUMBER), None),
            Field("where", TEXT, None),
            Field("censored", TEXT, None, keyword=True),
        ),
    ),
    "log_rank": Question(
        "log_rank",
        (
            Field("time", TEXT),
            Field("event", TEXT),
            Field("by", TEXT),
            Field("cuts", several(NUMBER), None),
            Field("where", TEXT, None),
            Field("strata", TEXT, None, keyword=True),
            Field("trend", FLAG, False, keyword=True),
            Field("emphasis", several(NUMBER), [0.0, 0.0], keyword=True),
        ),
    ),
    "hazard_regression": Question(
        "hazard_regression",
        (
            Field("formula", HAZARDS),
            Field("cuts", several(NUMBER), None),
            Field("where", TEXT, None),
            Field("confidence_level", NUMBER, 0.95, keyword=True),
            Field("offset", TEXT, None, keyword=True),
            Field("exposure", TEXT, None, keyword=True),
            Field("target", TEXT, "robust", keyword=True),
            Field("strata", TEXT, None, keyword=True),
            Field("proportionality", WHOLE, None, keyword=True),
            Field("by", TEXT, None, keyword=True),
        ),
    ),
    "t_test": Question(
        "t_test",
        (
            Field("column", TEXT, None),
            Field("group", TEXT, None),
            Field("levels", several(NAME), None),
            Field("columns", several(NAME), None),
            Field("paired", FLAG, False),
            Field("popmean", NUMBER, 0.0),
            Field("alternative", TEXT, "two-sided"),
            Field("where", TEXT, None),
            Field("confidence_level", NUMBER, 0.95, keyword=True),
        ),
    ),
    "anova": Question(
        "anova",
        (
            Field("column", TEXT),
            Field("group", TEXT),
            Field("levels", several(NAME), None),
            Field("where", TEXT, None),
            Field("confidence_level", NUMBER, 0.95, keyword=True),
        ),
    ),
    "mann_whitney": Question(
        "mann_whitney",
        (
            Field("column", TEXT),
            Field("group", TEXT),
            Field("levels", several(NAME), None),
            Field("alternative", TEXT, "two-sided"),
            Field("where", TEXT, None),
            Field("confidence_level", NUMBER, 0.95, keyword=True),
        ),
    ),
    "kruskal": Question(
        "kruskal",
        (
            Field("column", TEXT),
            Field("group", TEXT),
            Field("levels", several(NAME), None),
            Field("where", TEXT, None),
            Field("confidence_level", NUMBER, 0.95, keyword=True),
        ),
    ),
    "roc": Question(
        "roc",
        (
            Field("score", TEXT),
            Field("outcome", TEXT),
            Field("thresholds", several(NUMBER), []),
            Field("level", TEXT, None),
            Field("positive", TEXT, "high"),
            Field("where", TEXT, None),
            Field("confidence_level", NUMBER, 0.95, keyword=True),
            Field("coefficients", several(NUMBER), None, keyword=True),
        ),
    ),
    "proportion_test": Question(
        "proportion_test",
        (
            Field("column", TEXT),
            Field("group", TEXT, None),
            Field("levels", several(NAME), None),
            Field("success", TEXT, None),
            Field("value", NUMBER, None),
            Field("alternative", TEXT, "two-sided"),
            Field("where", TEXT, None),
            Field("confidence_level", NUMBER, 0.95, keyword=True),
        ),
    ),
    "correlation": Question(
        "correlation",
        (
            Field("columns", several(NAME)),
            Field("method", TEXT, "pearson"),
            Field("alternative", TEXT, "two-sided"),
            Field("where", TEXT, None),
            Field("confidence_level", NUMBER, 0.95, keyword=True),
        ),
    ),
    "ks_test": Question(
        "ks_test",
        (
            Field("column", TEXT),
            Field("group", TEXT, None),
            Field("levels", several(NAME), None),
            Field("law", TEXT, None),
            Field("parameters", several(NUMBER), None),
            Field("where", TEXT, None),
            Field("confidence_level", NUMBER, 0.95, keyword=True),
        ),
    ),
}
"""What each kind asks for."""


class Methods:
    """What Dataset inherits; every method is charged when it is called, each time."""

    __slots__ = ()

    def _ask(self, kind: str, values: Mapping[str, Any], spending: Spending) -> Any:
        raise NotImplementedError

    def count(
        self,
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        by: str | None = None,
        per: Literal["any"] | None = None,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "Estimate | GroupEstimates | NoReply":
        """Number of records, or of those for which `where` holds; with `by`, of each group; with
        `per`, of persons.

        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - by: A categorical, boolean or integer column; one answer a level, all in one charge.
        - per: Of a data set with several rows a person: `any` counts persons with such a row,
          once each, with less noise.

        >>> count = ds.count('grade >= 7 and waterfront == "1"', epsilon=0.1)
        """
        values = {"where": where, "by": by, "per": per}
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: Estimate | GroupEstimates | NoReply = self._ask("count", values, spending)
        return answer

    def mean(
        self,
        column: str,
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        by: str | None = None,
        weights: str | None = None,
        cluster: str | None = None,
        strata: str | None = None,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "Estimate | GroupEstimates | NoReply":
        """Mean of a bounded column over the records in use.

        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - by: A categorical, boolean or integer column; one answer a level, all in one charge.
        - weights: A numeric column with declared bounds of at least 0, such as survey weights:
          the mean is Σwx/Σw, with the linearised error. One row a person, without by, only.
        - cluster: A column of a survey's primary sampling units, 10 to 512 with `strata`: the
          error is that of their design (with replacement), with the design effect.
        - strata: A column of a survey's strata; units are the combinations of both. Without
          `cluster` records are drawn one by one in each.

        >>> mean = ds.mean("price", where="grade >= 8", epsilon=0.5)
        >>> found = ds.mean("price", by="waterfront", epsilon=0.5)
        """
        values = {
            "column": column,
            "where": where,
            "by": by,
            "weights": weights,
            "cluster": cluster,
            "strata": strata,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: Estimate | GroupEstimates | NoReply = self._ask("mean", values, spending)
        return answer

    def sum(
        self,
        column: str,
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        by: str | None = None,
        per: Literal["first", "last"] | None = None,
        weights: str | None = None,
        cluster: str | None = None,
        strata: str | None = None,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "Estimate | GroupEstimates | NoReply":
        """Sum of a column in this table; its interval counts the privacy noise alone. With
        weights, cluster or strata: the total of the population that a survey was drawn from,
        with its design's error.

        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - by: A categorical, boolean or integer column; one answer a level, all in one charge.
        - per: "first" or "last". Of a data set with several rows a person: only each person's
          first or last such row counts, with less noise.
        - weights: A numeric column with declared bounds of at least 0, such as survey weights:
          the total is Σwx. One row a person, without by, only.
        - cluster: A column of a survey's primary sampling units, 10 to 512 with `strata`: the
          error is that of their design (with replacement), with the design effect.
        - strata: A column of a survey's strata; units are the combinations of both. Without
          `cluster` records are drawn one by one in each.

        >>> total = ds.sum("bedrooms", where='waterfront == "1"', epsilon=0.5)
        """
        values = {
            "column": column,
            "where": where,
            "by": by,
            "per": per,
            "weights": weights,
            "cluster": cluster,
            "strata": strata,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: Estimate | GroupEstimates | NoReply = self._ask("sum", values, spending)
        return answer

    def describe(
        self,
        columns: Iterable[str] | None = None,
        by: str | None = None,
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "Description | NoReply":
        """What is in the data? Means, spreads, quartiles, shares, missing values and a histogram
        of every column, by group.

        - columns: Those that are described; all of them without it.
        - by: A categorical, boolean or integer column; one answer a level, all in one charge.
        - where: Which records, such as `grade >= 7 and waterfront == "1"`.

        >>> about = ds.describe(["price", "sqft_living", "condition"], by="waterfront", epsilon=1.0)
        """
        values = {"columns": columns, "by": by, "where": where}
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: Description | NoReply = self._ask("describe", values, spending)
        return answer

    def histogram(
        self,
        column: str,
        bins: Iterable[float] | None = None,
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        by: str | None = None,
        per: Literal["first", "last"] | None = None,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "Histogram | GroupHistograms | NoReply":
        """Counts by bin of public edges; without bins by level, or by whole number.

        - bins: Edges; None: levels, whole numbers.
        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - by: A categorical, boolean or integer column; one answer a level, all in one charge.
        - per: "first" or "last". Of a data set with several rows a person: only each person's
          first or last such row counts, with less noise.

        >>> found = ds.histogram("waterfront", epsilon=0.2)
        >>> found = ds.histogram("grade", by="waterfront", epsilon=0.2)
        """
        values = {"column": column, "bins": bins, "where": where, "by": by, "per": per}
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: Histogram | GroupHistograms | NoReply = self._ask("histogram", values, spending)
        return answer

    def crosstab(
        self,
        columns: Iterable[str],
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        per: Literal["first", "last"] | None = None,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "Crosstab | NoReply":
        """Counts by the values of two or more columns; of two also a test of independence.

        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - per: "first" or "last". Of a data set with several rows a person: only each person's
          first or last such row counts, with less noise.

        >>> table = ds.crosstab(["grade", "waterfront"], epsilon=0.2)
        """
        values = {"columns": columns, "where": where, "per": per}
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: Crosstab | NoReply = self._ask("crosstab", values, spending)
        return answer

    def synthetic(
        self,
        columns: Iterable[str],
        cliques: Iterable[Sequence[str]] | None = None,
        bins: int = 8,
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "SyntheticTables | NoReply":
        """Noisy tables of sets of columns (cliques), of which synthetic records are made, with
        intervals for what lies inside of one clique.

        - cliques: Sets of columns that are counted together, which your analyses need; every
          pair without it. A column in none is counted alone.
        - bins: 2 to 64. At most so many bins of a column of numbers, between the quantiles of
          the profile.
        - where: Which records, such as `grade >= 7 and waterfront == "1"`.

        >>> tables = ds.synthetic(["grade", "condition", "waterfront"],
        ...     [["grade", "condition", "waterfront"]], epsilon=1.0)
        """
        values = {"columns": columns, "cliques": cliques, "bins": bins, "where": where}
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: SyntheticTables | NoReply = self._ask("synthetic", values, spending)
        return answer

    def quantiles(
        self,
        column: str,
        probabilities: Iterable[float] = (0.25, 0.5, 0.75),
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        by: str | None = None,
        per: Literal["person", "first", "last"] | None = None,
        intervals: bool = False,
        weights: str | None = None,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "Quantiles | GroupQuantiles | NoReply":
        """Quantiles at any probabilities; larger probabilities never have smaller values.

        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - by: A categorical, boolean or integer column; one answer a level, all in one charge.
        - per: "person", "first" or "last". Of a data set with several rows a person: with
          `person` everybody counts once, in equal parts for such rows; with `first` or `last`
          only that row of each person counts. Either has less noise.
        - intervals: With 95 % intervals that count sampling and noise; values have about three
          quarters as much noise again, as their budget pays for the ends of the intervals too.
          An end that the noisy counts below it cannot distinguish from the quantile is the
          column's bound. Where a person has several rows, not with per='person'. Not with `by`.
        - weights: A numeric column with declared bounds of at least 0, such as survey weights:
          each record counts by it. The noise is that of the largest weight, so a narrow upper
          bound gives smaller errors. Not with `by` and `intervals`.

        >>> found = ds.quantiles("price", [0.1, 0.5, 0.9], epsilon=1.0)
        >>> ds.quantiles("price", [0.1, 0.5, 0.9], intervals=True, epsilon=1.0).conf_int()
        >>> found = ds.quantiles("price", [0.25, 0.5, 0.75], by="waterfront", epsilon=1.0)
        """
        values = {
            "column": column,
            "probabilities": probabilities,
            "where": where,
            "by": by,
            "per": per,
            "intervals": intervals,
            "weights": weights,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: Quantiles | GroupQuantiles | NoReply = self._ask("quantiles", values, spending)
        return answer

    def iqr(
        self,
        column: str,
        mechanism: Literal["quantiles", "ptr"] = "quantiles",
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        per: Literal["person", "first", "last"] | None = None,
        intervals: bool = False,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "Statistic | NoReply":
        """Interquartile range by "quantiles" (the only one with where), or "ptr", which may not
        reply.

        - mechanism: "quantiles" or "ptr".
        - where: For quantiles only.
        - per: "person", "first" or "last". Of a data set with several rows a person: with
          `person` everybody counts once, in equal parts for such rows; with `first` or `last`
          only that row of each person counts. Either has less noise.
        - intervals: With 95 % intervals that count sampling and noise; values have about three
          quarters as much noise again, as their budget pays for the ends of the intervals too.
          An end that the noisy counts below it cannot distinguish from the quantile is the
          column's bound. Where a person has several rows, not with per='person'.

        >>> ds.iqr("price", where="grade >= 8", epsilon=1.0).quartiles
        """
        values = {
            "column": column,
            "mechanism": mechanism,
            "where": where,
            "per": per,
            "intervals": intervals,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: Statistic | NoReply = self._ask("iqr", values, spending)
        return answer

    def median(
        self,
        column: str,
        mechanism: Literal["exponential", "smooth_sensitivity", "ptr"] = "exponential",
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        by: str | None = None,
        per: Literal["person", "first", "last"] | None = None,
        intervals: bool = False,
        weights: str | None = None,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "Statistic | GroupStatistics | NoReply":
        """Median by "exponential" (the only one with where), "smooth_sensitivity" or "ptr", which
        may not reply.

        - mechanism: "exponential", "smooth_sensitivity" or "ptr".
        - where: For the exponential mechanism only.
        - by: A categorical, boolean or integer column; one answer a level, all in one charge.
        - per: "person", "first" or "last". Of a data set with several rows a person: with
          `person` everybody counts once, in equal parts for such rows; with `first` or `last`
          only that row of each person counts. Either has less noise.
        - intervals: With 95 % intervals that count sampling and noise; values have about three
          quarters as much noise again, as their budget pays for the ends of the intervals too.
          An end that the noisy counts below it cannot distinguish from the quantile is the
          column's bound. Where a person has several rows, not with per='person'. Not with `by`.
        - weights: A numeric column with declared bounds of at least 0, such as survey weights:
          each record counts by it. The noise is that of the largest weight, so a narrow upper
          bound gives smaller errors. Not with `by` and `intervals`.

        >>> found = ds.median("price", where="grade >= 8", epsilon=0.5)
        >>> ds.median("price", intervals=True, epsilon=1.0).conf_int()
        >>> found = ds.median("price", by="waterfront", epsilon=0.5)
        """
        values = {
            "column": column,
            "mechanism": mechanism,
            "where": where,
            "by": by,
            "per": per,
            "intervals": intervals,
            "weights": weights,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: Statistic | GroupStatistics | NoReply = self._ask("median", values, spending)
        return answer

    def m_estimate(
        self,
        column: str,
        tuning: float | None = None,
        base: Literal["uniform", "cauchy"] = "uniform",
        lower: float | None = None,
        upper: float | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        psi: Literal["huber"] = "huber",
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "Statistic | NoReply":
        """Huber's location by the exponential mechanism.

        - tuning: c, in the units of the column; None: from the profile.
        - base: "uniform" or "cauchy".
        - lower: Of the uniform base; the Cauchy's quartile.

        >>> ds.m_estimate("price", tuning=1e5, lower=0, upper=2e6, epsilon=1.0)
        """
        values = {
            "column": column,
            "tuning": tuning,
            "base": base,
            "lower": lower,
            "upper": upper,
            "psi": psi,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: Statistic | NoReply = self._ask("m_estimate", values, spending)
        return answer

    def location_scale(
        self,
        column: str,
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        tuning: float | Literal["planned"] | None = None,
        mechanism: Literal["newton", "influence"] = "newton",
        calibration: Literal["asymptotic"] | None = None,
        confidence_level: float = 0.95,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "LocationScaleResults | NoReply":
        """Location and scale of a column by Huber's Proposal 2.

        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - tuning: 0.1 to 100. Huber's c; None: 1.5. planned: the smallest error at this epsilon,
          which moves the estimand with it; newton only.
        - mechanism: "newton" or "influence".
        - calibration: Of the influence mechanism, which needs it: a conditional guarantee.
        - confidence_level: 0.5 to 0.9999.

        >>> found = ds.location_scale("price", epsilon=1.0)
        """
        values = {
            "column": column,
            "where": where,
            "tuning": tuning,
            "mechanism": mechanism,
            "calibration": calibration,
            "confidence_level": confidence_level,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: LocationScaleResults | NoReply = self._ask("location_scale", values, spending)
        return answer

    def depth_median(
        self,
        columns: Iterable[str],
        scale: Literal["iqr", "mad", "trimmed"] = "trimmed",
        eta: float | Literal["private"] | None = None,
        directions: int | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "DepthMedian | NoReply":
        """Projection-depth median of up to 8 columns; No Reply is possible.

        - scale: "iqr", "mad" or "trimmed". Of the projections; trimmed also replaces their
          medians by trimmed means.
        - eta: Sharpness of the draw; None: planned; private: chosen from a grid.
        - directions: 2 to 1,000. None: 500.

        >>> found = ds.depth_median(["price", "sqft_living"], "trimmed", epsilon=2.0)
        """
        values = {"columns": columns, "scale": scale, "eta": eta, "directions": directions}
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: DepthMedian | NoReply = self._ask("depth_median", values, spending)
        return answer

    def linear_regression(
        self,
        formula: str,
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        loss: Literal["huber", "squared", "tukey"] = "huber",
        tuning: float | Literal["planned"] | None = None,
        ridge: float | None = None,
        mechanism: Literal["newton", "gradient_descent", "influence"] = "newton",
        calibration: Literal["ptr", "asymptotic"] | None = None,
        confidence_level: float = 0.95,
        weights: str | None = None,
        effects: Literal["person"] | None = None,
        by: str | None = None,
        fit_statistics: bool = False,
        working_correlation: float | None = None,
        cluster: str | Iterable[str] | None = None,
        strata: str | None = None,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "RegressionResults | GroupRegressions | NoReply":
        """Huber–Mallows linear regression by noisy Newton steps, gradient descent, or influence.

        With `influence` No Reply is possible.

        - formula: Such as `y ~ x1 + C(g) + log(x2) + x1:x2`.
        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - loss: "huber", "squared" or "tukey". squared: least squares of all records; the few
          largest scores are cut, and intervals allow for it. tukey: the biweight, started from
          a private Huber fit; newton only.
        - tuning: 0.1 to 100. The loss's c; None: 1.345 (tukey: 4.685; squared: none, or 4 of
          several rows a person). planned: chosen for the smallest error at this ε, which moves
          what is estimated with it (huber and newton only).
        - ridge: λ of the penalty λ/2 times the sum of squared slopes in the units of the data;
          newton only.
        - mechanism: "newton", "gradient_descent" or "influence".
        - calibration: "ptr" or "asymptotic". Of the influence mechanism; None: ptr. asymptotic:
          a conditional guarantee.
        - confidence_level: 0.5 to 0.9999.
        - weights: A numeric column with declared bounds of at least 0: each record's scores are
          multiplied by it. The noise is that of the largest weight, so a narrow upper bound
          gives smaller errors.
        - effects: person: an intercept of every person, of a data set with several rows a
          person (the within estimator; newton only). Terms that are the same in all rows of a
          person are not identifiable then.
        - by: A categorical, boolean or integer column; one answer a level, all in one charge.
        - fit_statistics: Also R² and the residual standard deviation, for a tenth of the
          budget; newton, without by, only.
        - working_correlation: 0 to 0.95. Of any two rows of a person, of a data set with
          several rows a person: generalised least squares with exchangeable rows (GEE; a random
          intercept with this intraclass correlation; newton only). Errors by person hold
          whatever the rows have in common.
        - cluster: A column with 10 to 512 declared levels, such as states: standard errors that
          hold where records of a level are correlated (cluster-robust), for a quarter of the
          budget; or two columns (two-way). For the Newton mechanism and tables of one row a
          person only.
        - strata: A column of a survey's strata, with `cluster` its primary sampling units: the
          combinations of both, 10 to 512, are the clusters.

        >>> fit = ds.linear_regression("log(price) ~ log(sqft_living) + C(waterfront)", epsilon=2.0)
        >>> fit = ds.linear_regression("price ~ sqft_living + grade", epsilon=1.0)
        >>> ds.linear_regression("price ~ grade", fit_statistics=True,
        ...     epsilon=1.0).rsquared_interval
        >>> found = ds.linear_regression("log(price) ~ log(sqft_living) + grade", by="waterfront",
        ...     epsilon=2.0)
        """
        values = {
            "formula": formula,
            "where": where,
            "loss": loss,
            "tuning": tuning,
            "ridge": ridge,
            "mechanism": mechanism,
            "calibration": calibration,
            "confidence_level": confidence_level,
            "weights": weights,
            "effects": effects,
            "by": by,
            "fit_statistics": fit_statistics,
            "working_correlation": working_correlation,
            "cluster": cluster,
            "strata": strata,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: RegressionResults | GroupRegressions | NoReply = self._ask(
            "linear_regression", values, spending
        )
        return answer

    def did(
        self,
        y: str,
        treated: str,
        time: str,
        start: float | None = None,
        covariates: str | None = None,
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        loss: Literal["squared", "huber"] = "squared",
        confidence_level: float = 0.95,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "DidResults | NoReply":
        """Difference in differences: by how much a treatment changes the response, with person and
        period effects.

        - y: The response, a column or a function of one, such as `log(wage)`.
        - treated: A 0/1 column, or one of two levels. With `start`, who belongs to the treated
          group, in every row; without it, whether the row is one under treatment.
        - time: The column of the period, whole numbers; each has an effect.
        - start: The first period under treatment, the same for all of the group.
        - covariates: Further terms of the formula grammar, such as `x1 + C(g)`.
        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - loss: "squared" or "huber". As of linear_regression: squared is least squares.
        - confidence_level: 0.5 to 0.9999.

        >>> found = ds.did("log(price)", "waterfront", "quarter", start=5, epsilon=2.0)
        """
        values = {
            "y": y,
            "treated": treated,
            "time": time,
            "start": start,
            "covariates": covariates,
            "where": where,
            "loss": loss,
            "confidence_level": confidence_level,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: DidResults | NoReply = self._ask("did", values, spending)
        return answer

    def event_study(
        self,
        y: str,
        treatment_time: str,
        time: str,
        before: int = 4,
        after: int = 4,
        never: float | None = None,
        covariates: str | None = None,
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        loss: Literal["squared", "huber"] = "squared",
        confidence_level: float = 0.95,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "EventStudyResults | NoReply":
        """Effects by time since treatment, with person and period effects, and a joint test of
        trends before it.

        - y: The response, a column or a function of one, such as `log(wage)`.
        - treatment_time: The column of the period of the person's first treatment, the same in
          all rows; missing: never treated.
        - time: The column of the period, whole numbers; each has an effect.
        - before: 2 to 30. Times before treatment; earlier ones count as the first.
        - after: 0 to 30. Times from treatment on; later ones count as the last.
        - never: The value of treatment_time that stands for never, beside missing cells.
        - covariates: Further terms of the formula grammar, such as `x1 + C(g)`.
        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - loss: "squared" or "huber". As of linear_regression: squared is least squares.
        - confidence_level: 0.5 to 0.9999.

        >>> found = ds.event_study("log(price)", "station", "quarter", before=3, after=3,
        ...     epsilon=4.0)
        """
        values = {
            "y": y,
            "treatment_time": treatment_time,
            "time": time,
            "before": before,
            "after": after,
            "never": never,
            "covariates": covariates,
            "where": where,
            "loss": loss,
            "confidence_level": confidence_level,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: EventStudyResults | NoReply = self._ask("event_study", values, spending)
        return answer

    def staggered_did(
        self,
        y: str,
        treatment_time: str,
        time: str,
        never: float | None = None,
        first: int | None = None,
        last: int | None = None,
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        confidence_level: float = 0.95,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "StaggeredDidResults | NoReply":
        """Differences in differences where treatment starts at different times: effects by cohort
        and period (Callaway & Sant'Anna), and their averages over all, by time since treatment,
        by cohort and by period.

        - y: The response, a column or a function of one, such as `log(wage)`.
        - treatment_time: The column of the first period under treatment, the same in all rows
          of a person; missing, or after the last period: never treated.
        - time: The column of the period, whole numbers.
        - never: The value of treatment_time that stands for never, beside missing cells.
        - first: The first period; None: the lower bound of `time`.
        - last: The last period; None: the upper bound of `time`.
        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - confidence_level: 0.5 to 0.9999.

        >>> found = ds.staggered_did("log(price)", "station", "quarter", epsilon=4.0)
        """
        values = {
            "y": y,
            "treatment_time": treatment_time,
            "time": time,
            "never": never,
            "first": first,
            "last": last,
            "where": where,
            "confidence_level": confidence_level,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: StaggeredDidResults | NoReply = self._ask("staggered_did", values, spending)
        return answer

    def glm(
        self,
        formula: str,
        family: Literal[
            "binomial",
            "poisson",
            "gamma",
            "negative_binomial",
            "gaussian",
            "multinomial",
            "ordinal",
        ],
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        tuning: float | Literal["planned"] | None = None,
        mechanism: Literal["newton", "influence"] = "newton",
        calibration: Literal["ptr", "asymptotic"] | None = None,
        confidence_level: float = 0.95,
        dispersion: float | None = None,
        link: Literal["logit", "log", "probit", "cloglog"] | None = None,
        weights: str | None = None,
        offset: str | None = None,
        exposure: str | None = None,
        by: str | None = None,
        fit_statistics: bool = False,
        target: Literal["robust", "likelihood"] = "robust",
        cluster: str | Iterable[str] | None = None,
        strata: str | None = None,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "RegressionResults | GroupRegressions | NoReply":
        """Robust generalised linear model by noisy Newton steps, or the binomial by influence.

        - formula: Such as `y ~ x1 + C(g) + log(x2) + x1:x2`.
        - family: "binomial", "poisson", "gamma", "negative_binomial", "gaussian", "multinomial"
          or "ordinal". Of the response: 0/1 (binomial), counts (poisson, negative_binomial),
          positive (gamma), any number (gaussian), or one of several levels, without order
          (multinomial) or in the order of the schema (ordinal).
        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - tuning: 0.1 to 100. Where Pearson residuals are cut; None: the family's default
          (binomial: not at all). planned: chosen for the smallest error at this ε, which moves
          what is estimated with it.
        - mechanism: "newton" or "influence".
        - calibration: "ptr" or "asymptotic". Of the influence mechanism; None: ptr. asymptotic:
          a conditional guarantee.
        - confidence_level: 0.5 to 0.9999.
        - dispersion: 0.001 to 100. α of the negative binomial, V = μ + αμ²; None: estimated
          with the coefficients. No other family has one.
        - link: "logit", "log", "probit" or "cloglog". Of the binomial: logit, probit, cloglog,
          or log for relative risks; None: the family's canonical one.
        - weights: A numeric column with declared bounds of at least 0: each record's scores are
          multiplied by it. The noise is that of the largest weight, so a narrow upper bound
          gives smaller errors.
        - offset: A numeric column that is added to the predictor, in the link's units.
        - exposure: A column of time or persons at risk with a lower bound above 0, in the link
          log: exp(coefficient) is a ratio of rates.
        - by: A categorical, boolean or integer column; one answer a level, all in one charge.
        - fit_statistics: Also R² and the residual standard deviation, for a tenth of the
          budget; binomial with the logit link or gaussian, newton, without by or tuning, only.
        - target: "robust" or "likelihood". likelihood: what maximum likelihood estimates on all
          records; the few largest scores are cut, and intervals allow for it (newton; one row a
          person; not with by or the binomial's log link). robust: residuals and leverage are
          bounded, which moves what is estimated.
        - cluster: A column with 10 to 512 declared levels, such as states: standard errors that
          hold where records of a level are correlated (cluster-robust), for a quarter of the
          budget; or two columns (two-way). For the Newton mechanism and tables of one row a
          person only.
        - strata: A column of a survey's strata, with `cluster` its primary sampling units: the
          combinations of both, 10 to 512, are the clusters.

        >>> fit = ds.glm("bedrooms ~ sqft_living + grade", "poisson", epsilon=1.0)
        """
        values = {
            "formula": formula,
            "family": family,
            "where": where,
            "tuning": tuning,
            "mechanism": mechanism,
            "calibration": calibration,
            "confidence_level": confidence_level,
            "dispersion": dispersion,
            "link": link,
            "weights": weights,
            "offset": offset,
            "exposure": exposure,
            "by": by,
            "fit_statistics": fit_statistics,
            "target": target,
            "cluster": cluster,
            "strata": strata,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: RegressionResults | GroupRegressions | NoReply = self._ask("glm", values, spending)
        return answer

    def discontinuity(
        self,
        y: str,
        running: str,
        cutoff: float,
        bandwidth: float,
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        confidence_level: float = 0.95,
        order: int = 1,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "DiscontinuityResults | NoReply":
        """By how much does a mean jump at a public cut-off of another column? A sharp regression
        discontinuity, by local linear fits with triangular weights.

        - y: The numeric column whose mean may jump.
        - running: The numeric column that decides who is treated.
        - cutoff: Records with `running` at or above it are treated.
        - bandwidth: How far from the cut-off records count at all, in the units of `running`:
          choose it without looking at the data.
        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - confidence_level: 0.5 to 0.9999.
        - order: 1 to 2. 1: lines on both sides; 2: parabolas, whose interval counts that the
          mean may be curved (robust bias correction).

        >>> found = ds.discontinuity("price", "sqft_living", cutoff=2000.0, bandwidth=1500.0,
        ...     epsilon=4.0)
        >>> robust = ds.discontinuity("price", "sqft_living", cutoff=2000.0, bandwidth=1500.0,
        ...     order=2, epsilon=4.0)
        """
        values = {
            "y": y,
            "running": running,
            "cutoff": cutoff,
            "bandwidth": bandwidth,
            "where": where,
            "confidence_level": confidence_level,
            "order": order,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: DiscontinuityResults | NoReply = self._ask("discontinuity", values, spending)
        return answer

    def treatment_effect(
        self,
        y: str,
        treatment: str,
        covariates: str,
        estimand: Literal["ate", "att", "atc", "overlap"] = "ate",
        estimator: Literal["aipw", "ipw", "gcomp"] = "aipw",
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        propensity: Iterable[float] | None = None,
        propensity_noise: Iterable[Sequence[float]] | None = None,
        outcome: Iterable[float] | None = None,
        outcome_covariance: Iterable[Sequence[float]] | None = None,
        outcome_link: Literal["identity", "logit", "log"] = "identity",
        trim: float = 0.05,
        confidence_level: float = 0.95,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "TreatmentEffectResults | NoReply":
        """What does a treatment change, others equal? The average effect by propensity weights,
        doubly robust (AIPW), or by g-computation; with overlap and balance.

        - y: The response, a column or a function of one.
        - treatment: A 0/1 column, or one of two levels.
        - covariates: What both models adjust for, such as `age + C(g) + x1:x2`.
        - estimand: "ate", "att", "atc" or "overlap". Whose effect: of all, of the treated, of
          the controls, or of those who might be either (overlap weights, for poor overlap).
        - estimator: "aipw", "ipw" or "gcomp". aipw: weights and a model of the response, right
          where either is (doubly robust); ipw: weights alone; gcomp: the model alone.
        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - propensity: Of a released logit of the treatment on the covariates, the intercept
          first; None: fitted first, for 30 % of the budget.
        - propensity_noise: The covariance of their privacy noise; None: none.
        - outcome: Of a released regression of y on the treatment and the covariates, in this
          order after the intercept; None: least squares, fitted first for 25 % of the budget.
        - outcome_covariance: Their covariance, of sampling and noise; None: none.
        - outcome_link: "identity", "logit" or "log". Of the released regression.
        - trim: 0.001 to 0.25. Propensities are cut to [trim, 1 − trim], so weights to 1/trim.
        - confidence_level: 0.5 to 0.9999.

        >>> found = ds.treatment_effect("price", "waterfront", "grade + sqft_living", "att",
        ...     epsilon=2.0)
        """
        values = {
            "y": y,
            "treatment": treatment,
            "covariates": covariates,
            "estimand": estimand,
            "estimator": estimator,
            "where": where,
            "propensity": propensity,
            "propensity_noise": propensity_noise,
            "outcome": outcome,
            "outcome_covariance": outcome_covariance,
            "outcome_link": outcome_link,
            "trim": trim,
            "confidence_level": confidence_level,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: TreatmentEffectResults | NoReply = self._ask("treatment_effect", values, spending)
        return answer

    def quantile_regression(
        self,
        formula: str,
        tau: float | Iterable[float] = 0.5,
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        confidence_level: float = 0.95,
        by: str | None = None,
        weights: str | None = None,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "QuantileRegressionResults | GroupQuantileRegressions | NoReply":
        """How the median, or another quantile, of the response depends on the regressors.

        - formula: Such as `y ~ x1 + C(g) + log(x2) + x1:x2`.
        - tau: 0.05 to 0.95. The level, from .05 to .95, or several, which share the charge.
        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - confidence_level: 0.5 to 0.9999.
        - by: A categorical, boolean or integer column; one answer a level, all in one charge.
        - weights: A numeric column with declared bounds of at least 0: each record's scores are
          multiplied by it. The noise is that of the largest weight, so a narrow upper bound
          gives smaller errors.

        >>> found = ds.quantile_regression("price ~ sqft_living + grade", [0.25, 0.5, 0.75],
        ...     epsilon=4.0)
        >>> found = ds.quantile_regression("price ~ grade", [0.25, 0.75], by="waterfront",
        ...     epsilon=4.0)
        """
        values = {
            "formula": formula,
            "tau": tau,
            "where": where,
            "confidence_level": confidence_level,
            "by": by,
            "weights": weights,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: QuantileRegressionResults | GroupQuantileRegressions | NoReply = self._ask(
            "quantile_regression", values, spending
        )
        return answer

    def hypothesis_test(
        self,
        formula: str,
        hypothesis: Iterable[str] | None = None,
        test: Literal["wald", "score", "lr"] = "wald",
        family: Literal["binomial", "poisson", "gamma", "negative_binomial", "gaussian"]
        | None = None,
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        tuning: float | None = None,
        mechanism: Literal["newton"] = "newton",
        confidence_level: float = 0.95,
        dispersion: float | None = None,
        loss: Literal["huber", "squared"] = "huber",
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "TestResults | NoReply":
        """Test of linear hypotheses about a model's coefficients, the privacy noise being counted.

        - formula: Such as `y ~ x1 + C(g) + log(x2) + x1:x2`.
        - hypothesis: Such as `["x1 = 0", "x2 = x3"]`; None: a table of the terms.
        - test: "wald", "score" or "lr".
        - family: "binomial", "poisson", "gamma", "negative_binomial" or "gaussian". Of a
          generalised linear model; None: the linear regression.
        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - tuning: 0.1 to 100.
        - confidence_level: 0.5 to 0.9999.
        - dispersion: 0.001 to 100. α of the negative binomial, V = μ + αμ²; None: estimated
          with the coefficients. No other family has one.
        - loss: "huber" or "squared". Of the linear regression, as its own: squared is least
          squares (wald and lr only).

        >>> ds.hypothesis_test("price ~ sqft_living + grade", ["grade = 0"], "score", epsilon=1.0)
        """
        values = {
            "formula": formula,
            "hypothesis": hypothesis,
            "test": test,
            "family": family,
            "where": where,
            "tuning": tuning,
            "mechanism": mechanism,
            "confidence_level": confidence_level,
            "dispersion": dispersion,
            "loss": loss,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: TestResults | NoReply = self._ask("hypothesis_test", values, spending)
        return answer

    def binned_residuals(
        self,
        formula: str,
        coefficients: Iterable[float],
        link: Literal["identity", "logit", "log"] = "identity",
        scale: float | None = None,
        variance_power: float = 0.0,
        dispersion: float = 0.0,
        bins: Iterable[float] | None = None,
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "BinnedResiduals | NoReply":
        """Where is a fit wrong? Mean residuals at released coefficients, by bins of the fitted
        values.

        - formula: Such as `y ~ x1 + C(g) + log(x2) + x1:x2`.
        - coefficients: In the order of the fit's terms, the intercept first.
        - link: "identity", "logit" or "log". Of the fit: linear, logistic, or of counts and
          positive numbers.
        - scale: Of the residuals, as released; None: what declared bounds allow.
        - variance_power: 0 to 2. k of the variance scale²μ^k: 0, of counts 1, of Gamma
          responses 2.
        - dispersion: 0 to 1,000. α of a negative binomial, whose variance has αμ² besides.
        - bins: Edges of the fitted values; None: of their noisy quantiles.
        - where: Which records, such as `grade >= 7 and waterfront == "1"`.

        >>> ds.binned_residuals("price ~ grade", [-1e6, 2e5], scale=3e5,
        ...     bins=[2e5, 4e5, 6e5, 8e5], epsilon=0.5)
        """
        values = {
            "formula": formula,
            "coefficients": coefficients,
            "link": link,
            "scale": scale,
            "variance_power": variance_power,
            "dispersion": dispersion,
            "bins": bins,
            "where": where,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: BinnedResiduals | NoReply = self._ask("binned_residuals", values, spending)
        return answer

    def study(
        self,
        variables: Iterable[str],
        main: str | None = None,
        by: str | None = None,
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        missing: Literal["mask", "indicator"] = "mask",
        effects: Literal["person"] | None = None,
        confidence_level: float = 0.95,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "Study | NoReply":
        """Noisy second moments of variables, from which any linear analysis of them is free.

        variables: columns, functions of columns, factors, bases or interactions, as in a
        formula; up to 64 columns of the design. main: one formula over them whose standard
        errors are to be robust to heteroscedasticity. by: a categorical column; every level has
        moments of its own, in one charge. missing: records with a missing cell are left out
        ("mask"); or, except for the first variable and the response of main, the cell is filled
        with a public value and a column missing(x) says where ("indicator"). effects: "person"
        for deviations from a person's means, where a person has several rows.

        - variables: Such as `["log(wage)", "schooling", "I(schooling**2)", "C(region)"]`.
        - main: Such as `y ~ x1 + C(g) + log(x2) + x1:x2`.
        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - missing: "mask" or "indicator".
        - effects: person: deviations from the person's means over the rows in use, of a data
          set with several rows a person. Formulas then have an intercept of every person (the
          within estimator).
        - confidence_level: 0.5 to 0.9999.

        >>> study = ds.study(["price", "sqft_living", "grade", "bedrooms"], epsilon=4.0)
        """
        values = {
            "variables": variables,
            "main": main,
            "by": by,
            "where": where,
            "missing": missing,
            "effects": effects,
            "confidence_level": confidence_level,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: Study | NoReply = self._ask("study", values, spending)
        return answer

    def survival_curve(
        self,
        time: str,
        event: str,
        by: str | None = None,
        cuts: Iterable[float] | None = None,
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "SurvivalCurves | NoReply":
        """How long until the event: survival curves (Kaplan–Meier's, by intervals), medians and
        restricted means.

        - time: The column with how long each person was followed, from 0.
        - event: The column that is 1 where the time ended with the event, 0 where it was
          censored.
        - by: A column of groups, whose levels are public.
        - cuts: The ends of the intervals, increasing, above 0; None: the profile's quantiles of
          `time`.
        - where: Which records, such as `grade >= 7 and waterfront == "1"`.

        >>> found = ds.survival_curve("days", "sold", by="waterfront", epsilon=1.0)
        """
        values = {"time": time, "event": event, "by": by, "cuts": cuts, "where": where}
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: SurvivalCurves | NoReply = self._ask("survival_curve", values, spending)
        return answer

    def cumulative_incidence(
        self,
        time: str,
        event: str,
        by: str | None = None,
        cuts: Iterable[float] | None = None,
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        censored: str | None = None,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "CumulativeIncidences | NoReply":
        """How likely is each of several competing events by a time? Cumulative incidences (Aalen
        and Johansen's), the mean time lost to each cause, and Gray's test between groups.

        - time: The column with how long each person was followed, from 0.
        - event: The column of how the time ended: its levels are the causes, and one of them
          says that no event was seen.
        - by: A column of groups, whose levels are public.
        - cuts: The ends of the intervals, increasing, above 0; None: the profile's quantiles of
          `time`.
        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - censored: The level of `event` that says that none was seen; None: the first.

        >>> found = ds.cumulative_incidence("days", "ended", by="waterfront", epsilon=1.0)
        """
        values = {
            "time": time,
            "event": event,
            "by": by,
            "cuts": cuts,
            "where": where,
            "censored": censored,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: CumulativeIncidences | NoReply = self._ask("cumulative_incidence", values, spending)
        return answer

    def log_rank(
        self,
        time: str,
        event: str,
        by: str,
        cuts: Iterable[float] | None = None,
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        strata: str | None = None,
        trend: bool = False,
        emphasis: Iterable[float] = (0.0, 0.0),
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "LogRankTest | NoReply":
        """Do groups differ in how long it takes until the event? The log-rank test, stratified, of
        a trend or with weights where that is asked, noise in its null law.

        - time: The column with how long each person was followed, from 0.
        - event: The column that is 1 where the time ended with the event, 0 where it was
          censored.
        - by: The column of the groups, whose levels are public.
        - cuts: The ends of the intervals, increasing, above 0; None: the profile's quantiles of
          `time`.
        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - strata: A column of public levels, within each of which the groups are compared.
        - trend: Whether the levels of `by` are compared as an order, by one contrast of their
          places, rather than each with all.
        - emphasis: Fleming and Harrington's (ρ, γ), the weights S^ρ (1 − S)^γ: [1, 0] for early
          differences, [0, 1] for late ones.

        >>> test = ds.log_rank("days", "sold", "waterfront", epsilon=1.0)
        >>> ds.log_rank("days", "sold", "grade", strata="waterfront", trend=True,
        ...     epsilon=1.0).pvalue
        >>> ds.log_rank("days", "sold", "waterfront", emphasis=(0, 1), epsilon=1.0).pvalue
        """
        values = {
            "time": time,
            "event": event,
            "by": by,
            "cuts": cuts,
            "where": where,
            "strata": strata,
            "trend": trend,
            "emphasis": emphasis,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: LogRankTest | NoReply = self._ask("log_rank", values, spending)
        return answer

    def hazard_regression(
        self,
        formula: str,
        cuts: Iterable[float] | None = None,
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        confidence_level: float = 0.95,
        offset: str | None = None,
        exposure: str | None = None,
        target: Literal["robust", "likelihood"] = "robust",
        strata: str | None = None,
        proportionality: int | None = None,
        by: str | None = None,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "HazardResults | GroupHazards | NoReply":
        """How the hazard of the event depends on the regressors (proportional hazards): hazard
        ratios, predicted curves.

        - formula: Such as `Surv(time, event) ~ x1 + C(g)`, or `Surv(start, time, event) ~ …`
          where persons come under observation at `start`.
        - cuts: The ends of the intervals in which the baseline hazard is constant, increasing,
          above 0; None: planned from the profile and epsilon.
        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - confidence_level: 0.5 to 0.9999.
        - offset: A numeric column that is added to the logarithm of the hazard, with the
          coefficient 1.
        - exposure: A column that multiplies the hazard, such as a number of parts at risk, with
          a lower bound above 0: the offset is its logarithm.
        - target: "robust" or "likelihood". likelihood: what Cox's regression estimates on all
          records; the few largest scores are cut, and intervals allow for it. robust: persons
          far from the middle count less, which moves what is estimated.
        - strata: A column of levels, each with a baseline hazard of its own, as `strata(g)` in
          the formula; it has no coefficient.
        - proportionality: 2 to 8. Also test whether hazards are proportional, with coefficients
          by so many bins of time (2 to 8, of about as many events each; 3 for a start), for a
          quarter of the cost; None: no test.
        - by: A categorical, boolean or integer column; one answer a level, all in one charge.

        >>> fit = ds.hazard_regression("Surv(days, sold) ~ grade + C(waterfront)", epsilon=2.0)
        >>> found = ds.hazard_regression("Surv(days, sold) ~ grade", by="waterfront", epsilon=2.0)
        """
        values = {
            "formula": formula,
            "cuts": cuts,
            "where": where,
            "confidence_level": confidence_level,
            "offset": offset,
            "exposure": exposure,
            "target": target,
            "strata": strata,
            "proportionality": proportionality,
            "by": by,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: HazardResults | GroupHazards | NoReply = self._ask(
            "hazard_regression", values, spending
        )
        return answer

    def t_test(
        self,
        column: str | None = None,
        group: str | None = None,
        levels: Iterable[str] | None = None,
        columns: Iterable[str] | None = None,
        paired: bool = False,
        popmean: float = 0.0,
        alternative: Literal["two-sided", "less", "greater"] = "two-sided",
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        confidence_level: float = 0.95,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "NamedTest | NoReply":
        """Do two means differ? Welch's t test of two groups, of one mean against a number, or of
        paired columns.

        - column: The numbers whose mean is tested.
        - group: The column of two groups; without it, one mean is tested.
        - levels: The levels of `group` that are compared; all of them without it.
        - columns: Two columns of each record, with `paired`.
        - paired: Whether `columns` are paired.
        - popmean: The mean, or mean difference, of the hypothesis.
        - alternative: "two-sided", "less" or "greater". What is claimed against the hypothesis:
          of the first group or column.
        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - confidence_level: 0.5 to 0.9999.

        >>> test = ds.t_test("price", "waterfront", epsilon=1.0)
        >>> ds.t_test(columns=["sqft_living", "bedrooms"], paired=True, popmean=2000, epsilon=1.0)
        """
        values = {
            "column": column,
            "group": group,
            "levels": levels,
            "columns": columns,
            "paired": paired,
            "popmean": popmean,
            "alternative": alternative,
            "where": where,
            "confidence_level": confidence_level,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: NamedTest | NoReply = self._ask("t_test", values, spending)
        return answer

    def anova(
        self,
        column: str,
        group: str,
        levels: Iterable[str] | None = None,
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        confidence_level: float = 0.95,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "NamedTest | NoReply":
        """Do the means of several groups differ? Welch's one-way analysis of variance.

        - column: The numbers whose means are compared.
        - group: The column of the groups.
        - levels: The levels of `group` that are compared; all of them without it.
        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - confidence_level: 0.5 to 0.9999.

        >>> ds.anova("price", "condition", epsilon=1.0).to_frame()
        """
        values = {
            "column": column,
            "group": group,
            "levels": levels,
            "where": where,
            "confidence_level": confidence_level,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: NamedTest | NoReply = self._ask("anova", values, spending)
        return answer

    def mann_whitney(
        self,
        column: str,
        group: str,
        levels: Iterable[str] | None = None,
        alternative: Literal["two-sided", "less", "greater"] = "two-sided",
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        confidence_level: float = 0.95,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "NamedTest | NoReply":
        """Does one of two groups tend to larger values? Mann and Whitney's (Wilcoxon's) rank-sum
        test on public bins.

        - column: The numbers whose ranks are compared.
        - group: The column of two groups.
        - levels: The levels of `group` that are compared; all of them without it.
        - alternative: "two-sided", "less" or "greater". What is claimed against the hypothesis:
          of the first group or column.
        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - confidence_level: 0.5 to 0.9999.

        >>> ds.mann_whitney("price", "waterfront", alternative="less", epsilon=1.0)
        """
        values = {
            "column": column,
            "group": group,
            "levels": levels,
            "alternative": alternative,
            "where": where,
            "confidence_level": confidence_level,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: NamedTest | NoReply = self._ask("mann_whitney", values, spending)
        return answer

    def kruskal(
        self,
        column: str,
        group: str,
        levels: Iterable[str] | None = None,
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        confidence_level: float = 0.95,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "NamedTest | NoReply":
        """Do some of several groups tend to larger values? Kruskal and Wallis's test of ranks on
        public bins.

        - column: The numbers whose ranks are compared.
        - group: The column of the groups.
        - levels: The levels of `group` that are compared; all of them without it.
        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - confidence_level: 0.5 to 0.9999.

        >>> ds.kruskal("price", "condition", levels=["1", "3", "5"], epsilon=1.0)
        """
        values = {
            "column": column,
            "group": group,
            "levels": levels,
            "where": where,
            "confidence_level": confidence_level,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: NamedTest | NoReply = self._ask("kruskal", values, spending)
        return answer

    def roc(
        self,
        score: str,
        outcome: str,
        thresholds: Iterable[float] = (),
        level: str | None = None,
        positive: Literal["high", "low"] = "high",
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        confidence_level: float = 0.95,
        coefficients: Iterable[float] | None = None,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "RocCurve | NoReply":
        """How well does a score tell an outcome? The ROC curve, its area, and sensitivity,
        specificity, predictive values and likelihood ratios at thresholds.

        - score: The column of the score or measurement; with `coefficients` the terms of a
          released model, such as `age + C(g)`.
        - outcome: A boolean column, or one of two levels.
        - thresholds: Scores at which the test is described, besides the public edges.
        - level: The level of `outcome` that is looked for; without it the second.
        - positive: "high" or "low". Which scores speak for that level.
        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - confidence_level: 0.5 to 0.9999.
        - coefficients: Of a released model, the intercept first; the score is then its linear
          predictor: of a logit the log odds.

        >>> curve = ds.roc("price", "waterfront", thresholds=[1_000_000], epsilon=1.0)
        >>> ds.roc("grade + sqft_living", "waterfront", coefficients=[-9.0, 0.4, 0.0005],
        ...     epsilon=1.0)
        """
        values = {
            "score": score,
            "outcome": outcome,
            "thresholds": thresholds,
            "level": level,
            "positive": positive,
            "where": where,
            "confidence_level": confidence_level,
            "coefficients": coefficients,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: RocCurve | NoReply = self._ask("roc", values, spending)
        return answer

    def proportion_test(
        self,
        column: str,
        group: str | None = None,
        levels: Iterable[str] | None = None,
        success: str | None = None,
        value: float | None = None,
        alternative: Literal["two-sided", "less", "greater"] = "two-sided",
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        confidence_level: float = 0.95,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "NamedTest | NoReply":
        """Do two proportions differ, or one from a number? The z test of counts of successes.

        - column: A boolean, categorical or integer column.
        - group: The column of two groups; without it, one is tested.
        - levels: The levels of `group` that are compared; all of them without it.
        - success: The level that is counted; of a dummy column, 1.
        - value: Of one group: the proportion of the hypothesis.
        - alternative: "two-sided", "less" or "greater". What is claimed against the hypothesis:
          of the first group or column.
        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - confidence_level: 0.5 to 0.9999.

        >>> ds.proportion_test("condition", "waterfront", success="5", epsilon=1.0)
        """
        values = {
            "column": column,
            "group": group,
            "levels": levels,
            "success": success,
            "value": value,
            "alternative": alternative,
            "where": where,
            "confidence_level": confidence_level,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: NamedTest | NoReply = self._ask("proportion_test", values, spending)
        return answer

    def correlation(
        self,
        columns: Iterable[str],
        method: Literal["pearson", "spearman", "kendall"] = "pearson",
        alternative: Literal["two-sided", "less", "greater"] = "two-sided",
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        confidence_level: float = 0.95,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "NamedTest | NoReply":
        """Are two columns related? Pearson's, Spearman's or Kendall's correlation with its
        interval and test.

        - columns: Two columns of numbers.
        - method: "pearson", "spearman" or "kendall".
        - alternative: "two-sided", "less" or "greater". What is claimed against the hypothesis:
          of the first group or column.
        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - confidence_level: 0.5 to 0.9999.

        >>> ds.correlation(["price", "sqft_living"], method="spearman", epsilon=1.0)
        """
        values = {
            "columns": columns,
            "method": method,
            "alternative": alternative,
            "where": where,
            "confidence_level": confidence_level,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: NamedTest | NoReply = self._ask("correlation", values, spending)
        return answer

    def ks_test(
        self,
        column: str,
        group: str | None = None,
        levels: Iterable[str] | None = None,
        law: Literal["normal", "uniform", "exponential"] | None = None,
        parameters: Iterable[float] | None = None,
        where: str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        confidence_level: float = 0.95,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "NamedTest | NoReply":
        """Do two distributions differ, or one from a public law? Kolmogorov and Smirnov's test on
        public bins.

        - column: The numbers whose distribution is tested.
        - group: The column of two groups; without it, a law is tested.
        - levels: The levels of `group` that are compared; all of them without it.
        - law: "normal", "uniform" or "exponential". The law that the column is compared with.
        - parameters: Of the law: mean and sd; lower and upper end; mean.
        - where: Which records, such as `grade >= 7 and waterfront == "1"`.
        - confidence_level: 0.5 to 0.9999.

        >>> ds.ks_test("price", "waterfront", epsilon=1.0)
        """
        values = {
            "column": column,
            "group": group,
            "levels": levels,
            "law": law,
            "parameters": parameters,
            "where": where,
            "confidence_level": confidence_level,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: NamedTest | NoReply = self._ask("ks_test", values, spending)
        return answer
