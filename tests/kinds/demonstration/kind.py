# SPDX-License-Identifier: Apache-2.0
"""The kind `share`: the share of the records for which a condition holds, from one noisy count."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.query import Query
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.count.plan import CountPlan, plan_count
from reticent_server.kinds.fields import Text
from reticent_server.kinds.shared.columns import mask


@dataclass(frozen=True, slots=True)
class Share(Query):
    """The share of the records for which `where` holds."""

    where: Text
    kind: Literal["share"] = field(default="share", kw_only=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareResult:
    """The share, with its standard error."""

    share: float
    standard_error: float
    n: int


@dataclass(frozen=True, slots=True)
class SharePlan(Planned):
    """A count, divided by the public number of records."""

    count: CountPlan

    @property
    def outline(self) -> Outline:
        return self.count.outline

    @property
    def forecast(self) -> Mapping[str, Any]:
        return {
            "privacy_standard_error": self.count.forecast["privacy_standard_error"] / self.count.n
        }

    def run(self) -> Recipe:
        counted = yield from self.count.run()
        n = self.count.n
        return ShareResult(share=counted.value / n, standard_error=counted.standard_error / n, n=n)


def _plan(facts: DatasetFacts, query: Share, offer: PrivacyCost) -> SharePlan:
    return SharePlan(plan_count(facts, mask(facts, query.where), offer.rho))


KIND = Kind(
    query=Share,
    group=QuestionGroup.DESCRIBE,
    asks="Which share of the records have something?",
    plan=_plan,
    result=ShareResult,
    examples=(Share("x > 0"),),
    page="counts-and-means",
)
