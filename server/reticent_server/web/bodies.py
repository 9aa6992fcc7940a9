# SPDX-License-Identifier: Apache-2.0
"""Request bodies: a question of a registered kind, and what it may cost."""

from functools import reduce
from operator import or_
from typing import Annotated, Any

from pydantic import Field

from reticent_server.domain.query import FeatureText, Privacy
from reticent_server.kinds import KINDS
from reticent_server.pipeline.ask import Ask
from reticent_server.web.strict import Body, Name, Positive, Strict

QueryBody: Any = Annotated[
    reduce(or_, (kind.query for kind in KINDS if kind.for_analysts)),
    Field(discriminator="kind", description="What is asked."),
]


class PersonsBody(Strict):
    """Features of a person, by name; none: those that the curator has declared."""

    persons: Annotated[dict[str, FeatureText], Field(max_length=64)]


class PrivacyBody(Strict):
    """What the release may cost; delta null: the policy's default, and where an account is charged
    for delta at most a tenth of the account's, so that ten such requests fit."""

    epsilon: Positive
    delta: Positive | None = None


class RequestBody(Body):
    """A question about a data set, for POST /v1/plans and /v1/releases."""

    dataset: Name
    query: QueryBody
    privacy: PrivacyBody
    project: Name | None = Field(
        None,
        description="The name of the project that pays; null: your own budget, or the only project "
        "of yours that has the data set.",
    )
    protocol: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = Field(
        None,
        description="The SHA-256 of a protocol that the curator has accepted for the data set: a "
        "request that differs from it is refused and charged nothing.",
    )

    def ask(self, idempotency_key: str | None = None) -> Ask:
        """The request as the pipeline takes it."""
        privacy = Privacy(epsilon=self.privacy.epsilon, delta=self.privacy.delta)
        return Ask(self.dataset, self.query, privacy, idempotency_key, self.project, self.protocol)
