# SPDX-License-Identifier: Apache-2.0
"""Every kind's result class: the only list of kinds that is written by hand here.

A kind has a module of its own, or shares one of `reticent.results` with others. The kinds'
questions are made from the server's (reticent._methods).
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from reticent._release import Release

KINDS: Mapping[str, tuple[str, str]] = {
    "count": ("results.estimate", "Estimate"),
    "sum": ("results.estimate", "Estimate"),
    "mean": ("results.estimate", "Estimate"),
    "describe": ("kinds.describe", "Description"),
    "histogram": ("kinds.histogram", "Histogram"),
    "crosstab": ("kinds.crosstab", "Crosstab"),
    "synthetic": ("kinds.synthetic", "SyntheticTables"),
    "quantiles": ("kinds.quantiles", "Quantiles"),
    "iqr": ("results.statistic", "Statistic"),
    "median": ("results.statistic", "Statistic"),
    "m_estimate": ("results.statistic", "Statistic"),
    "depth_median": ("kinds.depth_median", "DepthMedian"),
    "location_scale": ("kinds.location_scale", "LocationScaleResults"),
    "linear_regression": ("results.regression", "RegressionResults"),
    "did": ("kinds.did", "DidResults"),
    "event_study": ("kinds.event_study", "EventStudyResults"),
    "staggered_did": ("kinds.staggered_did", "StaggeredDidResults"),
    "glm": ("results.regression", "RegressionResults"),
    "discontinuity": ("kinds.discontinuity", "DiscontinuityResults"),
    "treatment_effect": ("kinds.treatment_effect", "TreatmentEffectResults"),
    "subsample_aggregate": ("kinds.subsample_aggregate", "BlockResults"),
    "quantile_regression": ("kinds.quantile_regression", "QuantileRegressionResults"),
    "survival_curve": ("kinds.survival_curve", "SurvivalCurves"),
    "cumulative_incidence": ("kinds.cumulative_incidence", "CumulativeIncidences"),
    "hazard_regression": ("kinds.hazard_regression", "HazardResults"),
    "log_rank": ("kinds.log_rank", "LogRankTest"),
    "hypothesis_test": ("kinds.hypothesis_test", "TestResults"),
    "binned_residuals": ("kinds.binned_residuals", "BinnedResiduals"),
    "t_test": ("results.named_test", "NamedTest"),
    "anova": ("results.named_test", "NamedTest"),
    "mann_whitney": ("results.named_test", "NamedTest"),
    "kruskal": ("results.named_test", "NamedTest"),
    "proportion_test": ("results.named_test", "NamedTest"),
    "correlation": ("results.named_test", "NamedTest"),
    "ks_test": ("results.named_test", "NamedTest"),
    "roc": ("kinds.roc", "RocCurve"),
    "study": ("kinds.study", "Study"),
}
"""Module below `reticent` and class by kind; imported when a release of the kind is read."""


BY_GROUP: Mapping[str, tuple[str, str]] = {
    "count": ("results.group_estimates", "GroupEstimates"),
    "sum": ("results.group_estimates", "GroupEstimates"),
    "mean": ("results.group_estimates", "GroupEstimates"),
    "histogram": ("kinds.group_histograms", "GroupHistograms"),
    "quantiles": ("kinds.group_quantiles", "GroupQuantiles"),
    "median": ("results.group_statistics", "GroupStatistics"),
    "linear_regression": ("results.group_regressions", "GroupRegressions"),
    "glm": ("results.group_regressions", "GroupRegressions"),
    "quantile_regression": ("kinds.group_quantile_regressions", "GroupQuantileRegressions"),
    "hazard_regression": ("kinds.group_hazards", "GroupHazards"),
}
"""The same for kinds that have another class where the question has `by`."""
BY_FAMILY: Mapping[tuple[str, str], tuple[str, str]] = {
    ("glm", "multinomial"): ("kinds.category_regression", "CategoryResults"),
    ("glm", "ordinal"): ("kinds.category_regression", "CategoryResults"),
}
"""The same for families that have another class than the kind."""


def result_class(kind: str, *, by_group: bool = False, family: str = "") -> type[Release]:
    """The class of a kind's releases; `Release` itself for a kind of a later version. by_group: the
    question has `by`.
    """
    special = BY_GROUP.get(kind) if by_group else BY_FAMILY.get((kind, family))
    place = special or KINDS.get(kind)
    if place is None:
        return Release
    module, name = place
    found: type[Release] = getattr(import_module(f"reticent.{module}"), name)
    return found


def class_of(query: Mapping[str, Any]) -> type[Release]:
    """The class of a question's releases."""
    return result_class(
        query["kind"],
        by_group=query.get("by") is not None,
        family=str(query.get("family")),
    )
