# SPDX-License-Identifier: Apache-2.0
"""The kind `depth_median`."""

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.depth_median.plan import DepthMedianResult, plan_depth_median
from reticent_server.kinds.depth_median.query import DepthMedian
from reticent_server.kinds.shared.columns import sufficient, whole_columns


def _plan(facts: DatasetFacts, query: DepthMedian, offer: PrivacyCost) -> Planned:
    columns = whole_columns(facts, query.columns)
    return plan_depth_median(facts, columns, query, sufficient(offer))


KIND = Kind(
    query=DepthMedian,
    group=QuestionGroup.DESCRIBE,
    asks="Where is the joint centre of several columns?",
    plan=_plan,
    result=DepthMedianResult,
    examples=(
        DepthMedian(("x", "y"), eta="private"),
        DepthMedian(("x", "y"), "iqr"),
        DepthMedian(("y",), "mad"),
    ),
    page="depth-median",
)
