# SPDX-License-Identifier: Apache-2.0
"""Reticent's client: robust, differentially private statistics over HTTP.

>>> import reticent
>>> ds = reticent.Client("http://127.0.0.1:8000", key=key).dataset("houses")
>>> fit = ds.linear_regression("price ~ sqft_living + grade", epsilon=1.0)
>>> fit.summary()

Each name is imported when it is first used: numpy, scipy and httpx take half a second to import,
and a program that only looks at `reticent.__version__`, or catches an error, needs none of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reticent._archive import Archive
    from reticent._budget import Account, Budget
    from reticent._bundle import Bundle, BundlePlan, bundle
    from reticent._client import Client
    from reticent._dataset import Dataset
    from reticent._errors import (
        BudgetExhausted,
        ConfirmationNeeded,
        Conflict,
        IdempotencyConflict,
        InvalidFormula,
        InvalidHypothesis,
        InvalidPrivacy,
        InvalidQuery,
        InvalidRequest,
        MissingDependency,
        NotEstimable,
        NotFound,
        NotPrivate,
        NotSpent,
        PolicyRefused,
        RateLimited,
        ReticentError,
        ServerError,
        ServerUnavailable,
        TransportError,
        Unauthorized,
        UnexpectedReply,
        UselessForecast,
    )
    from reticent._guarantee import Amount, Coverage, Guarantee
    from reticent._hypotheses import WaldTest
    from reticent._plan import Plan
    from reticent._pooled.meta import MetaAnalysis, meta
    from reticent._pooled.protocol import Protocol, protocol
    from reticent._pooled.study import PooledStudy, load_pooled, pool, pooled
    from reticent._power import Power
    from reticent._profile import Profile
    from reticent._projects import Project, ProjectRequest
    from reticent._queries import planned
    from reticent._reading import load, release_schema
    from reticent._release import NoReply, Release
    from reticent._schema import Column, Schema
    from reticent._twin import Twin
    from reticent._vector import Vector
    from reticent.kinds.binned_residuals import BinnedResiduals
    from reticent.kinds.category_regression import CategoryResults, PredictedLevels
    from reticent.kinds.crosstab import Crosstab, IndependenceTest
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
    from reticent.kinds.subsample_aggregate import BlockResults
    from reticent.kinds.survival_curve import SurvivalCurves
    from reticent.kinds.synthetic import CellEstimates, SyntheticTables
    from reticent.kinds.treatment_effect import TreatmentEffectResults
    from reticent.results.effects import Effects
    from reticent.results.estimate import Estimate
    from reticent.results.group_estimates import GroupDifferences, GroupEstimates
    from reticent.results.group_regressions import GroupRegressions
    from reticent.results.group_statistics import GroupStatistics
    from reticent.results.named_test import NamedTest
    from reticent.results.prediction import Prediction
    from reticent.results.regression import RegressionResults
    from reticent.results.several import FitTable, compare, plot_fits, table
    from reticent.results.statistic import Statistic

    __version__: str

__all__ = [
    "Account",
    "Amount",
    "Archive",
    "BinnedResiduals",
    "BlockResults",
    "Budget",
    "BudgetExhausted",
    "Bundle",
    "BundlePlan",
    "CategoryResults",
    "CellEstimates",
    "Client",
    "Column",
    "ConfirmationNeeded",
    "Conflict",
    "Coverage",
    "Crosstab",
    "CumulativeIncidences",
    "Dataset",
    "DepthMedian",
    "Description",
    "DidResults",
    "DiscontinuityResults",
    "Effects",
    "Estimate",
    "EventStudyResults",
    "FitTable",
    "GroupDifferences",
    "GroupEstimates",
    "GroupHazards",
    "GroupHistograms",
    "GroupQuantileRegressions",
    "GroupQuantiles",
    "GroupRegressions",
    "GroupStatistics",
    "Guarantee",
    "HazardResults",
    "Histogram",
    "IdempotencyConflict",
    "IndependenceTest",
    "InvalidFormula",
    "InvalidHypothesis",
    "InvalidPrivacy",
    "InvalidQuery",
    "InvalidRequest",
    "LocationScaleResults",
    "LogRankTest",
    "MetaAnalysis",
    "MissingDependency",
    "NamedTest",
    "NoReply",
    "NotEstimable",
    "NotFound",
    "NotPrivate",
    "NotSpent",
    "Plan",
    "PolicyRefused",
    "PooledStudy",
    "Power",
    "PredictedLevels",
    "Prediction",
    "Profile",
    "Project",
    "ProjectRequest",
    "Protocol",
    "QuantileRegressionResults",
    "Quantiles",
    "RateLimited",
    "RegressionResults",
    "Release",
    "ReticentError",
    "RocCurve",
    "Schema",
    "ServerError",
    "ServerUnavailable",
    "StaggeredDidResults",
    "Statistic",
    "Study",
    "SurvivalCurves",
    "SyntheticTables",
    "TestResults",
    "TransportError",
    "TreatmentEffectResults",
    "Twin",
    "Unauthorized",
    "UnexpectedReply",
    "UselessForecast",
    "Vector",
    "WaldTest",
    "bundle",
    "compare",
    "load",
    "load_pooled",
    "meta",
    "planned",
    "plot_fits",
    "pool",
    "pooled",
    "protocol",
    "release_schema",
    "table",
]

_MODULES = {
    "Account": "_budget",
    "Amount": "_guarantee",
    "Archive": "_archive",
    "BinnedResiduals": "kinds.binned_residuals",
    "BlockResults": "kinds.subsample_aggregate",
    "Budget": "_budget",
    "BudgetExhausted": "_errors",
    "Bundle": "_bundle",
    "BundlePlan": "_bundle",
    "CategoryResults": "kinds.category_regression",
    "CellEstimates": "kinds.synthetic",
    "Client": "_client",
    "Column": "_schema",
    "ConfirmationNeeded": "_errors",
    "Conflict": "_errors",
    "Coverage": "_guarantee",
    "Crosstab": "kinds.crosstab",
    "CumulativeIncidences": "kinds.cumulative_incidence",
    "Dataset": "_dataset",
    "DepthMedian": "kinds.depth_median",
    "Description": "kinds.describe",
    "DidResults": "kinds.did",
    "Effects": "results.effects",
    "Estimate": "results.estimate",
    "GroupDifferences": "results.group_estimates",
    "GroupEstimates": "results.group_estimates",
    "GroupHazards": "kinds.group_hazards",
    "GroupHistograms": "kinds.group_histograms",
    "EventStudyResults": "kinds.event_study",
    "GroupQuantileRegressions": "kinds.group_quantile_regressions",
    "GroupQuantiles": "kinds.group_quantiles",
    "GroupRegressions": "results.group_regressions",
    "GroupStatistics": "results.group_statistics",
    "FitTable": "results.several",
    "Guarantee": "_guarantee",
    "DiscontinuityResults": "kinds.discontinuity",
    "HazardResults": "kinds.hazard_regression",
    "Histogram": "kinds.histogram",
    "IdempotencyConflict": "_errors",
    "IndependenceTest": "kinds.crosstab",
    "InvalidFormula": "_errors",
    "InvalidHypothesis": "_errors",
    "InvalidPrivacy": "_errors",
    "InvalidQuery": "_errors",
    "InvalidRequest": "_errors",
    "LocationScaleResults": "kinds.location_scale",
    "LogRankTest": "kinds.log_rank",
    "RocCurve": "kinds.roc",
    "TreatmentEffectResults": "kinds.treatment_effect",
    "MissingDependency": "_errors",
    "NamedTest": "results.named_test",
    "NoReply": "_release",
    "NotEstimable": "_errors",
    "NotFound": "_errors",
    "NotPrivate": "_errors",
    "NotSpent": "_errors",
    "Plan": "_plan",
    "Power": "_power",
    "PolicyRefused": "_errors",
    "PredictedLevels": "kinds.category_regression",
    "Prediction": "results.prediction",
    "Profile": "_profile",
    "Project": "_projects",
    "ProjectRequest": "_projects",
    "QuantileRegressionResults": "kinds.quantile_regression",
    "Quantiles": "kinds.quantiles",
    "RateLimited": "_errors",
    "RegressionResults": "results.regression",
    "Release": "_release",
    "ReticentError": "_errors",
    "Schema": "_schema",
    "ServerError": "_errors",
    "ServerUnavailable": "_errors",
    "StaggeredDidResults": "kinds.staggered_did",
    "Statistic": "results.statistic",
    "SurvivalCurves": "kinds.survival_curve",
    "SyntheticTables": "kinds.synthetic",
    "Study": "kinds.study",
    "TestResults": "kinds.hypothesis_test",
    "TransportError": "_errors",
    "Twin": "_twin",
    "Unauthorized": "_errors",
    "UnexpectedReply": "_errors",
    "UselessForecast": "_errors",
    "Vector": "_vector",
    "WaldTest": "_hypotheses",
    "bundle": "_bundle",
    "compare": "results.several",
    "load": "_reading",
    "MetaAnalysis": "_pooled.meta",
    "PooledStudy": "_pooled.study",
    "Protocol": "_pooled.protocol",
    "load_pooled": "_pooled.study",
    "meta": "_pooled.meta",
    "pool": "_pooled.study",
    "pooled": "_pooled.study",
    "protocol": "_pooled.protocol",
    "planned": "_queries",
    "plot_fits": "results.several",
    "release_schema": "_reading",
    "table": "results.several",
}
"""The module of each name; type checkers read the imports above, and a test compares the two."""


if not TYPE_CHECKING:  # it would hide misspelt names from type checkers

    def __getattr__(name: str) -> Any:
        """A public name, imported now and kept."""
        if name == "__version__":
            found: Any = _version()
        elif name in _MODULES:
            found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    try:
        return version("reticent")
    except PackageNotFoundError:  # a source tree on the path
        return "unknown"
