# SPDX-License-Identifier: Apache-2.0
"""The question of subsample and aggregate."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Ge, Le, MaxLen
from pydantic import Field, Strict

from reticent_server.domain.query import Query
from reticent_server.kinds.fields import Flag, Level, Number
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.location_scale.query import LocationScale
from reticent_server.kinds.shared.linear.query import LinearRegression

ModelQuery = LinearRegression | Glm | LocationScale


@dataclass(frozen=True, slots=True)
class SubsampleAggregateQuery(Query):
    """A model fitted to secret random blocks of the records, and its estimates averaged."""

    model: Annotated[
        ModelQuery,
        Field(discriminator="kind", description="What is fitted to a block; no mechanism."),
    ]
    blocks: Annotated[
        Annotated[int, Strict(), Ge(2), Le(65_536)] | None,
        Field(description="null means planned."),
    ] = None
    parameter_bounds: Annotated[
        Annotated[tuple[tuple[Number, ...], ...], MaxLen(256)] | None,
        Field(description="[lower, upper] of each estimate; null: from public facts."),
    ] = None
    bias_correction: Annotated[
        Flag, Field(description="Of a block's estimate, where there is one.")
    ] = True
    confidence_level: Level = 0.95
    kind: Literal["subsample_aggregate"] = field(default="subsample_aggregate", kw_only=True)
