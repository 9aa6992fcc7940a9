# SPDX-License-Identifier: Apache-2.0
"""The kind `profile`, which a curator publishes."""

from dataclasses import dataclass, field
from typing import Literal

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Query
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.profile.plan import ProfilePlan, ProfileResult, plan_profile


@dataclass(frozen=True, slots=True)
class ProfileQuery(Query):
    """The data set's profile; asked by the curator only."""

    kind: Literal["profile"] = field(default="profile", kw_only=True)


def _plan(facts: DatasetFacts, query: ProfileQuery, offer: PrivacyCost) -> ProfilePlan:  # noqa: ARG001
    return plan_profile(facts, offer.rho)


KIND = Kind(
    query=ProfileQuery,
    group=QuestionGroup.DESCRIBE,
    asks="What does every column look like, for all analysts to see?",
    plan=_plan,
    result=ProfileResult,
    examples=(ProfileQuery(),),
    page="profile",
    for_analysts=False,
)
