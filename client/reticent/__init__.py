"""Reticent's client: robust, differentially private statistics over HTTP.

>>> import reticent
>>> ds = reticent.Client("http://127.0.0.1:8000", key=key).dataset("houses")
>>> fit = ds.linear_regression("price ~ sqft_living + grade", epsilon=1.0)
>>> fit.summary()
"""

from importlib.metadata import PackageNotFoundError, version

from reticent._blocks import BlockResults
from reticent._budget import Account, Budget
from reticent._client import Client
from reticent._dataset import Dataset
from reticent._errors import (
    BudgetExhausted,
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
    PolicyRefused,
    RateLimited,
    ReticentError,
    ServerError,
    ServerUnavailable,
    TransportError,
    Unauthorized,
    UnexpectedReply,
)
from reticent._estimate import Estimate
from reticent._guarantee import Amount, Coverage, Guarantee
from reticent._hypotheses import WaldTest
from reticent._location_scale import LocationScaleResults
from reticent._plan import Plan
from reticent._profile import Profile
from reticent._projects import Project, ProjectRequest
from reticent._queries import planned
from reticent._reading import load, release_schema
from reticent._regression import RegressionResults
from reticent._release import NoReply, Release
from reticent._robust import DepthMedian, Quantiles, Statistic
from reticent._schema import Column, Schema
from reticent._tables import Crosstab, Histogram, IndependenceTest
from reticent._test_results import TestResults
from reticent._vector import Vector

__all__ = [
    "Account",
    "Amount",
    "BlockResults",
    "Budget",
    "BudgetExhausted",
    "Client",
    "Column",
    "Conflict",
    "Coverage",
    "Crosstab",
    "Dataset",
    "DepthMedian",
    "Estimate",
    "Guarantee",
    "Histogram",
    "IdempotencyConflict",
    "IndependenceTest",
    "InvalidFormula",
    "InvalidHypothesis",
    "InvalidPrivacy",
    "InvalidQuery",
    "InvalidRequest",
    "LocationScaleResults",
    "MissingDependency",
    "NoReply",
    "NotEstimable",
    "NotFound",
    "Plan",
    "PolicyRefused",
    "Profile",
    "Project",
    "ProjectRequest",
    "Quantiles",
    "RateLimited",
    "RegressionResults",
    "Release",
    "ReticentError",
    "Schema",
    "ServerError",
    "ServerUnavailable",
    "Statistic",
    "TestResults",
    "TransportError",
    "Unauthorized",
    "UnexpectedReply",
    "Vector",
    "WaldTest",
    "load",
    "planned",
    "release_schema",
]

try:
    __version__ = version("reticent")
except PackageNotFoundError:  # a source tree on the path
    __version__ = "unknown"
