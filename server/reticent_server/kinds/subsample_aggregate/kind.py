# SPDX-License-Identifier: Apache-2.0
"""The kind `subsample_aggregate`."""

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.location_scale.query import LocationScale
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.kinds.subsample_aggregate.model import fitted_model
from reticent_server.kinds.subsample_aggregate.plan import plan_subsample_aggregate
from reticent_server.kinds.subsample_aggregate.query import SubsampleAggregateQuery
from reticent_server.kinds.subsample_aggregate.report import BlockEstimates


def _plan(facts: DatasetFacts, query: SubsampleAggregateQuery, offer: PrivacyCost) -> Planned:
    fitted = fitted_model(facts, query.model, query.bias_correction)
    return plan_subsample_aggregate(facts, fitted, query, offer.rho)


KIND = Kind(
    query=SubsampleAggregateQuery,
    group=QuestionGroup.MODEL,
    asks="What does a model say on average over small parts of the data?",
    plan=_plan,
    result=BlockEstimates,
    examples=(
        SubsampleAggregateQuery(Glm("b ~ x", "binomial")),
        SubsampleAggregateQuery(LinearRegression("y ~ x")),
        SubsampleAggregateQuery(LocationScale("y")),
    ),
    page="subsample-aggregate",
)
