# SPDX-License-Identifier: Apache-2.0
"""The kind `binned_residuals`."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Literal

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import AllowInfNan, Field, Strict

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.design import ColumnValue, Term
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Query
from reticent_server.errors import InvalidQuery
from reticent_server.formula import parse_formula
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.binned_residuals.fitted import FittedModel
from reticent_server.kinds.binned_residuals.links import MEANS, Spread
from reticent_server.kinds.binned_residuals.plan import (
    MOST_BINS,
    BinnedResidualsPlan,
    BinnedResidualsResult,
    plan_binned_residuals,
)
from reticent_server.kinds.fields import Formula, Number, Positive, Where

MAX_TERMS = 64  # as many columns as a design may have
Small = Annotated[float, Strict(), Ge(0), Le(1000), AllowInfNan(False)]


@dataclass(frozen=True, slots=True)
class BinnedResiduals(Query):
    """Where is a fit wrong? Mean residuals at released coefficients, by bins of the fitted
    values.
    """

    formula: Formula
    coefficients: Annotated[
        Annotated[tuple[Number, ...], MinLen(1), MaxLen(MAX_TERMS)],
        Field(description="In the order of the fit's terms, the intercept first."),
    ]
    link: Annotated[
        Literal["identity", "logit", "log"],
        Field(description="Of the fit: linear, logistic, or of counts and positive numbers."),
    ] = "identity"
    scale: Annotated[
        Positive | None,
        Field(description="Of the residuals, as released; null: what declared bounds allow."),
    ] = None
    variance_power: Annotated[
        Annotated[float, Strict(), Ge(0), Le(2), AllowInfNan(False)],
        Field(description="k of the variance scale²μ^k: 0, of counts 1, of Gamma responses 2."),
    ] = 0.0
    dispersion: Annotated[
        Small, Field(description="α of a negative binomial, whose variance has αμ² besides.")
    ] = 0.0
    bins: Annotated[
        Annotated[tuple[Number, ...], MinLen(2), MaxLen(MOST_BINS + 1)] | None,
        Field(description="Edges of the fitted values; null: of their noisy quantiles."),
    ] = None
    where: Where = None
    kind: Literal["binned_residuals"] = field(default="binned_residuals", kw_only=True)


def _plan(facts: DatasetFacts, query: BinnedResiduals, offer: PrivacyCost) -> BinnedResidualsPlan:
    design = parse_formula(query.formula, facts.schema, query.where, profile=facts.profile)
    if design.response is None or len(design.names) != len(query.coefficients):
        raise InvalidQuery(
            f"The formula has {len(design.names)} terms; give a coefficient for each, in their "
            "order."
        )
    if query.bins is not None and any(a >= b for a, b in pairwise(query.bins)):
        raise InvalidQuery("bins must be edges in increasing order.")
    MEANS[query.link].check(design.response)
    step = 1.0 if _whole(facts, design.response) else 0.0
    spread = Spread(query.scale, query.variance_power, query.dispersion, step)
    model = FittedModel(design, query.coefficients, query.link)
    return plan_binned_residuals(facts, model, spread, query.bins, offer.rho)


def _whole(facts: DatasetFacts, response: Term) -> bool:
    """Whether the response is a column of whole numbers."""
    (factor, *more) = response.factors
    column = facts.schema.column(factor.column) if isinstance(factor, ColumnValue) else None
    return not more and column is not None and column.kind.is_number and column.kind.is_whole


KIND = Kind(
    query=BinnedResiduals,
    group=QuestionGroup.MODEL,
    asks="Where does a model that I have fitted go wrong?",
    plan=_plan,
    result=BinnedResidualsResult,
    examples=(
        BinnedResiduals("y ~ x", (0.5, 1.0), scale=1.5),
        BinnedResiduals("b ~ x + C(g)", (0.1, 0.5, 0.2, -0.2), "logit", bins=(0.1, 0.4, 0.6, 0.9)),
        BinnedResiduals("k ~ x", (1.0, 0.1), "log", 1.2, 1.0, where="x > 0"),
    ),
    page="binned-residuals",
)
