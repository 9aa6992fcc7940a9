# SPDX-License-Identifier: Apache-2.0
"""The body of POST /v1/requests: a project that an analyst wishes to have, and the plan behind
it."""

from typing import Annotated, Any

from pydantic import Field

from reticent_server.web.bodies import RequestBody
from reticent_server.web.strict import Name, Positive, Strict

MOST = 20
"""Members, and data sets: a person reads each."""

MOST_QUERIES = 50

Line = Annotated[str, Field(min_length=1, max_length=2000, pattern=r"^[^\x00-\x1f\x7f]+$")]
ProjectName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$")]
Day = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]


class ShareBody(Strict):
    """A budget for a data set."""

    dataset: Name
    epsilon: Positive
    delta: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]


class ProjectBody(Strict):
    """What the project is for, who is in it besides you, until when, and what it may spend."""

    name: ProjectName
    purpose: Line
    members: list[Name] = Field([], max_length=MOST, description="Names of other analysts.")
    ends_on: Day | None = Field(None, description="The last day, in UTC; null: no end.")
    budgets: list[ShareBody] = Field(min_length=1, max_length=MOST)
    plan: list[RequestBody] = Field(
        max_length=MOST_QUERIES, description="The queries that you mean to ask, at their epsilon."
    )

    def document(self) -> dict[str, Any]:
        """As it is kept, and shown to whoever decides."""
        return {
            "name": self.name,
            "purpose": self.purpose,
            "members": self.members,
            "ends_on": self.ends_on,
            "budgets": [share.model_dump() for share in self.budgets],
            "plan": [item.ask().canonical() for item in self.plan],
        }
