# SPDX-License-Identifier: Apache-2.0
"""The types of the fields of questions about times to an event."""

from typing import Annotated

from annotated_types import MaxLen, MinLen
from pydantic import Field

from reticent_server.kinds.fields import Name, Number
from reticent_server.kinds.shared.follow_up.question import MOST_CUTS

Time = Annotated[
    Name, Field(description="The column with how long each person was followed, from 0.")
]
Event = Annotated[
    Name,
    Field(
        description=(
            "The column that is 1 where the time ended with the event, 0 where it was censored."
        )
    ),
]
By = Annotated[Name | None, Field(description="A column of groups, whose levels are public.")]
Cuts = Annotated[
    Annotated[tuple[Number, ...], MinLen(1), MaxLen(MOST_CUTS)] | None,
    Field(
        description=(
            "The ends of the intervals, increasing, above 0; null: the profile's quantiles of "
            "`time`."
        )
    ),
]
