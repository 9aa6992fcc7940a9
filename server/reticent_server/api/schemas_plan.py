# SPDX-License-Identifier: Apache-2.0
"""The body of POST /v1/plans: a request for a release, and what the analyst hopes to get."""

from typing import Annotated

from annotated_types import Len
from pydantic import Field

from reticent_server.domain.query import Privacy
from reticent_server.errors import InvalidPrivacy
from reticent_server.pipeline.ask import Ask
from reticent_server.pipeline.planning import MAX_EPSILON
from reticent_server.pipeline.wanted import Wanted
from reticent_server.web.bodies import PrivacyBody, RequestBody
from reticent_server.web.strict import Name, Positive, Strict

Ratio = Annotated[float, Field(strict=True, ge=0.01, le=1000, allow_inf_nan=False)]


CiRatio = Annotated[float, Field(gt=1, le=1000, allow_inf_nan=False)]
_MOST_NAMES = 1000  # as many terms as a design may have


class WantedBody(Strict):
    """How wide intervals are to be: of every number that the plan forecasts, or by name. One of the
    two.
    """

    ci_ratio: CiRatio | Annotated[dict[Name, CiRatio], Len(1, _MOST_NAMES)] | None = Field(
        None,
        description=(
            "The interval's width over that of the same interval without privacy, such as 1.25."
        ),
    )
    half_width: Positive | Annotated[dict[Name, Positive], Len(1, _MOST_NAMES)] | None = Field(
        None, description="Half of the 95 % interval, in the units of the data."
    )

    def wanted(self) -> Wanted:
        """As the pipeline takes it."""
        return Wanted(self.ci_ratio, self.half_width)


class PlanPrivacyBody(PrivacyBody):
    """epsilon: with `wanted` the most that may be spent; null then: the most that can be asked."""

    epsilon: Positive | None = None  # type: ignore[assignment]


class PlanBody(RequestBody):
    """A question about a data set that is to be planned, and not answered."""

    privacy: PlanPrivacyBody = PlanPrivacyBody()
    wanted: WantedBody | None = Field(
        None,
        description="Plans at the least epsilon, to three digits, at which the intervals are "
        "forecast to be as narrow as this.",
    )
    target: Ratio | None = Field(
        None,
        description="Of a linear regression: the largest privacy standard error, relative to the "
        "sampling standard error, that is wanted of a coefficient. The forecast's `epsilon_for` "
        "says "
        "which epsilon it takes; null: at 1 and at 0.5.",
    )

    def ask(self, idempotency_key: str | None = None) -> Ask:
        """With the most that may be asked where epsilon is left open. Raises InvalidPrivacy without
        `wanted` and epsilon.
        """
        epsilon = self.privacy.epsilon
        if epsilon is None and self.wanted is None:
            raise InvalidPrivacy("Give epsilon, or what is wanted in its place.")
        privacy = Privacy(MAX_EPSILON if epsilon is None else epsilon, self.privacy.delta)
        return Ask(self.dataset, self.query, privacy, idempotency_key, self.project, self.protocol)

    def widths(self) -> Wanted | None:
        """What the epsilon is to be found for."""
        return None if self.wanted is None else self.wanted.wanted()
