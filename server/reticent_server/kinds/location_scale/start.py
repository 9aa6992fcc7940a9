# SPDX-License-Identifier: Apache-2.0
"""Where a location–scale fit starts: a public centre and scale of the column, of the records in
use.

With a profile: of public rows (fitting.public.rows), to which the mask is applied. Without one the
query releases a profile of the column first, of the records in use (fitting.own_profile).
"""

from dataclasses import dataclass, replace

from reticent_server.domain.design import ColumnValue, Design, Term
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Column
from reticent_server.fitting.public.rows import draw_public_rows
from reticent_server.fitting.public.standardise import Location
from reticent_server.kinds.shared.linear.response import public_response


@dataclass(frozen=True, slots=True)
class PublicStart:
    """The centre and scale, and the share of the records that are expected to be in use."""

    location: Location
    share: float


def column_design(design: Design, column: Column) -> Design:
    """The same mask, with the column alone to be measured."""
    term = Term(column.name, (ColumnValue(column.name),), column.lower, column.upper)
    return replace(design, response=term, columns=(column.name,))


def public_start(
    design: Design, column: Column, facts: DatasetFacts, *, masked: bool = True
) -> PublicStart | None:
    """None where no profile covers the columns. masked: as of draw_public_rows."""
    alone = column_design(design, column)
    ready = replace(alone, where=None, missing_columns=())
    if masked:
        ready = replace(alone, columns=design.columns)
    rows = draw_public_rows(ready, facts, masked=masked)
    if rows is None or ready.response is None:
        return None
    return PublicStart(public_response(ready.response, rows.y).location, rows.share)
