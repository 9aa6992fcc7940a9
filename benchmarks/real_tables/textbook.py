# SPDX-License-Identifier: Apache-2.0
"""What `lm()` and `glm()` estimate on a whole table, with sandwich (HC0) standard errors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import statsmodels.api as sm

from benchmarks.accuracy import BenchTable
from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.maps import response, standardised
from reticent_server.fitting.report import back_transform
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.numerics.evaluate import evaluate, in_use

# of the plan whose coding is used; coefficients in the data's units do not depend on it
_PLAN_EPSILON = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Textbook:
    """Of q terms: coefficients (q,) of the whole table, and sandwich standard errors (q,) of n of
    its records.
    """

    terms: tuple[str, ...]
    coefficients: FloatArray
    standard_errors: FloatArray


def textbook(table: BenchTable, query: LinearRegression | Glm, n: int) -> Textbook:
    """The least-squares or maximum-likelihood fit of a table."""
    coding: Coding = table.plan(query, _PLAN_EPSILON).planned.ground.coding
    block = table.block()
    used = in_use(coding.design, block)
    X, y = np.array(standardised(coding, block)).T[used], response(coding, block)[used]
    offset = None
    if coding.design.offset is not None:
        offset = np.broadcast_to(evaluate(coding.design.offset, block), used.shape)[used]
    theta, covariance = _fit(query, X, y, offset)
    back = back_transform(coding)
    errors = np.sqrt(np.diag(back.covariance(covariance)) * table.n / n)
    return Textbook(tuple(coding.design.names), back.coefficients(theta), np.asarray(errors))


def _fit(
    query: LinearRegression | Glm, X: FloatArray, y: FloatArray, offset: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Coefficients (q,) and HC0 covariance (q, q)."""
    if isinstance(query, LinearRegression):
        found: Any = sm.OLS(y, X).fit(cov_type="HC0")
    else:
        found = sm.GLM(y, X, family=_family(query), offset=offset).fit(cov_type="HC0", tol=1e-10)
    return np.asarray(found.params), np.asarray(found.cov_params())


def _family(query: Glm) -> Any:
    families, links = sm.families, sm.families.links
    match query.family:
        case "binomial":
            return families.Binomial(links.Probit() if query.link == "probit" else links.Logit())
        case "poisson":
            return families.Poisson()
        case "gamma":
            return families.Gamma(links.Log())
        case "negative_binomial":
            return families.NegativeBinomial(alpha=query.dispersion)
    raise ValueError(query.family)
