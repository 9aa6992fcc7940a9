# SPDX-License-Identifier: Apache-2.0
"""The question of a column's M-estimate."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from reticent_server.domain.query import Query
from reticent_server.kinds.fields import Name, Number, Positive


@dataclass(frozen=True, slots=True)
class MEstimateQuery(Query):
    """Huber's location by the exponential mechanism."""

    column: Name
    psi: Literal["huber"] = "huber"
    tuning: Annotated[
        Positive | None,
        Field(description="c, in the units of the column; null: from the profile."),
    ] = None
    base: Literal["uniform", "cauchy"] = "uniform"
    lower: Annotated[
        Number | None, Field(description="Of the uniform base; the Cauchy's quartile.")
    ] = None
    upper: Number | None = None
    kind: Literal["m_estimate"] = field(default="m_estimate", kw_only=True)
