# SPDX-License-Identifier: Apache-2.0
"""What a study is asked and what it stands on, all public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.steps import FloatArray
from reticent_server.fitting import trust
from reticent_server.fitting.coding import TermCoding, code_terms
from reticent_server.fitting.heavy_terms import lost_shares
from reticent_server.fitting.public.coordinates import Coordinates, public_coordinates
from reticent_server.fitting.public.rows import draw_public_rows
from reticent_server.kinds.study.maps import RecordGroups

_FARTHEST = 1e100  # of a standardised column: its square stays finite


@dataclass(frozen=True, slots=True)
class StudyQuestion:
    """What is asked: the columns by variable, groups and their levels' names, the declared formula,
    the level of its intervals.
    """

    design: Design
    variables: Mapping[str, Sequence[str]]
    groups: RecordGroups
    levels: tuple[str, ...]
    main: tuple[str, Design] | None
    level: float


@dataclass(frozen=True, slots=True, eq=False)
class StudyGround:
    """What a study stands on, all public: coding, coordinates, the share of records in use."""

    coding: TermCoding
    coordinates: Coordinates
    share: float

    @property
    def reach(self) -> FloatArray:
        """(q,) the largest square of each standardised column within its declared bounds."""
        return column_reach(self.coding)

    def heavy(self, radius_squared: float) -> list[str]:
        """What to say of terms whose tails a radius cuts."""
        lost = lost_shares(self.coding, self.coordinates, radius_squared)
        names = trust.heavy(lost)
        said = (
            f"Much of the variance of {', '.join(names)} comes from few records, which the "
            "radius downweights: "
            "least squares of all records may differ. A logarithm, or an indicator of the few, "
            "is about all of them."
        )
        return [said] if names else []


def ground_of(design: Design, facts: DatasetFacts, *, masked: bool = True) -> StudyGround | None:
    """The public ground of a study's columns; None where no profile covers them."""
    rows = draw_public_rows(design, facts, masked=masked)
    if rows is None:
        return None
    coding = code_terms(design, rows)
    if design.deviations:  # they have mean 0, and the intercept only counts rows
        coding = replace(coding, locations=tuple(replace(x, centre=0.0) for x in coding.locations))
    return StudyGround(coding, public_coordinates(coding.standardised(rows.X)), rows.share)


def person_rows_of(facts: DatasetFacts) -> int:
    """m where a person's rows count together, else 1."""
    return 1 if facts.persons is None else facts.schema.unit.max_rows


def column_reach(coding: TermCoding) -> FloatArray:
    """(q,) the largest square of each standardised column within its declared bounds; 0 for the
    intercept and dummies.
    """
    terms = coding.design.terms
    pairs = zip(terms, coding.centres[1:], strict=True)
    ends = np.array([0.0, *(max(abs(t.lower - c), abs(t.upper - c)) for t, c in pairs)])
    dummies = np.array([True, *(term.dummy for term in terms)])
    return np.where(dummies, 0.0, np.minimum(ends / coding.scales, _FARTHEST) ** 2)
