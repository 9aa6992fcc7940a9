# SPDX-License-Identifier: Apache-2.0
"""The question of a projection-depth median."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import Field, Strict

from reticent_server.domain.query import Query
from reticent_server.kinds.fields import Name, Positive

# the certificate's linear programs grow with the columns; beyond 8 a reply is unlikely
MAX_COLUMNS = 8
MOST_DIRECTIONS = 1000  # of the projections, each of which is sorted


@dataclass(frozen=True, slots=True)
class DepthMedian(Query):
    """Projection-depth median of up to 8 columns; No Reply is possible."""

    columns: Annotated[tuple[Name, ...], MinLen(1), MaxLen(MAX_COLUMNS)]
    scale: Annotated[
        Literal["iqr", "mad", "trimmed"],
        Field(
            description="Of the projections; trimmed also replaces their medians by trimmed means."
        ),
    ] = "trimmed"
    eta: Annotated[
        Positive | Literal["private"] | None,
        Field(description="Sharpness of the draw; null: planned; private: chosen from a grid."),
    ] = None
    directions: Annotated[
        Annotated[int, Strict(), Ge(2), Le(MOST_DIRECTIONS)] | None, Field(description="null: 500.")
    ] = None
    kind: Literal["depth_median"] = field(default="depth_median", kw_only=True)
