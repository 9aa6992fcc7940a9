# SPDX-License-Identifier: Apache-2.0
"""The kind `m_estimate`."""

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned
from reticent_server.fitting.results import Value
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.m_estimate.plan import plan_m_estimate
from reticent_server.kinds.m_estimate.query import MEstimateQuery
from reticent_server.kinds.shared.columns import sufficient, whole_columns


def _plan(facts: DatasetFacts, query: MEstimateQuery, offer: PrivacyCost) -> Planned:
    (column,) = whole_columns(facts, (query.column,))
    return plan_m_estimate(facts, column, query, sufficient(offer).epsilon)


KIND = Kind(
    query=MEstimateQuery,
    group=QuestionGroup.DESCRIBE,
    asks="What is a typical value, when some records are far off?",
    plan=_plan,
    result=Value,
    examples=(MEstimateQuery("y", tuning=1.5, base="cauchy"), MEstimateQuery("y", tuning=2.0)),
    page="quantiles-and-medians",
    title="M-estimate",
)
