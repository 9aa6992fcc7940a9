# SPDX-License-Identifier: Apache-2.0
"""The body of POST /v1/plans: a request for a release, and what the analyst hopes to get."""

from typing import Annotated

from pydantic import Field

from reticent_server.web.bodies import RequestBody

Ratio = Annotated[float, Field(strict=True, ge=0.01, le=1000, allow_inf_nan=False)]


class PlanBody(RequestBody):
    """A question about a data set that is to be planned, and not answered."""

    target: Ratio | None = Field(
        None,
        description="Of a linear regression: the largest privacy standard error, relative to the "
        "sampling standard error, that is wanted of a coefficient. The forecast's `epsilon_for` says "
        "which epsilon it takes; null: at 1 and at 0.5.",
    )
