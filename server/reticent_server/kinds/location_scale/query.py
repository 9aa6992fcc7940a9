# SPDX-License-Identifier: Apache-2.0
"""The question of a column's location and scale."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from reticent_server.domain.query import Query
from reticent_server.kinds.fields import Level, Name, PlannedTuning, Where


@dataclass(frozen=True, slots=True)
class LocationScale(Query):
    """Location and scale of a column by Huber's Proposal 2."""

    column: Name
    where: Where = None
    tuning: Annotated[
        PlannedTuning | None,
        Field(
            description="Huber's c; null: 1.5. planned: the smallest error at this epsilon, which "
            "moves the estimand with it; newton only."
        ),
    ] = None
    mechanism: Literal["newton", "influence"] = "newton"
    calibration: Annotated[
        Literal["asymptotic"] | None,
        Field(description="Of the influence mechanism, which needs it: a conditional guarantee."),
    ] = None
    confidence_level: Level = 0.95
    kind: Literal["location_scale"] = field(default="location_scale", kw_only=True)
