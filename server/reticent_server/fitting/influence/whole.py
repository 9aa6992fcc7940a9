# SPDX-License-Identifier: Apache-2.0
"""What every fit by influence needs of its table, by public facts. Raises InvalidQuery."""

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.errors import InvalidQuery

# one record may move the curvature by half of what β allows: the source wants n large, and gives no
# number
_SLACK_IN_N = 2.0


def check_whole(facts: DatasetFacts, design: Design) -> None:
    """A unit of one row, and all n records in use."""
    if facts.schema.unit.many_rows:
        raise InvalidQuery(
            "This mechanism is proved for tables whose protected unit has exactly one row; here "
            "it may "
            "have none, or more."
        )
    if design.where is not None:
        raise InvalidQuery("This mechanism is proved for all n records; ask for newton with where.")
    if design.missing_columns:
        raise InvalidQuery(
            f"This mechanism is proved for all n records, and cells of {design.missing_columns[0]} "
            "may be missing."
        )


def no_calibration(calibration: str | None) -> None:
    """Raises InvalidQuery where a calibration is asked of a mechanism that has none."""
    if calibration is not None:
        raise InvalidQuery("calibration belongs to the influence mechanism.")


def too_few(relative: float, beta: float) -> None:
    """Refuses where B/(nλ), what a record adds to the curvature λ, is not ≤ β/2."""
    if relative > beta / _SLACK_IN_N:
        raise InvalidQuery(
            "The asymptotic calibration needs more records, a larger epsilon or fewer terms."
        )
