# SPDX-License-Identifier: Apache-2.0
"""What differs from regression model to regression model, and the public ground that each stands
on."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from scipy.special import logsumexp

from reticent_server.domain.design import Design, Term
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.budget import Signal, Sizes
from reticent_server.fitting.coding import Coding, code_design
from reticent_server.fitting.column_measures import tells_tails
from reticent_server.fitting.empty_levels import Fitted, LeftOut, without_empty_levels
from reticent_server.fitting.public.coordinates import Coordinates, public_coordinates
from reticent_server.fitting.public.rows import PublicRows, draw_public_rows
from reticent_server.fitting.public.standardise import Location
from reticent_server.fitting.score import ScoreFamily
from reticent_server.fitting.standard_fit import StandardFit

# relative singular value of the public rows below which least squares leaves a direction at 0
_SINGULAR = 1e-6
_KEPT = 2  # grounds, of as many tables of public rows (public.rows): a question and another one

ResponseT = TypeVar("ResponseT")


@dataclass(frozen=True, slots=True, eq=False)
class FitGround(Generic[ResponseT]):
    """What a fit stands on, all public: the coding, the coordinates, what is known of the response,
    the share of records in use; the start (q,), whose predictor is typical, and `spread`: 1, or
    more where it cannot be; offset (rows,) of the public rows, None without one; unequal: as of
    Sizes; distances: (rows,) of the responses of public rows from their
    median, None where no profile has the tails of all columns. left_out: what the design leaves out
    of the one that was asked for (fitting.empty_levels).
    """

    coding: Coding
    coordinates: Coordinates
    response: ResponseT
    share: float
    start: FloatArray
    spread: float
    offset: FloatArray | None = None
    unequal: float = 1.0
    distances: FloatArray | None = None
    left_out: LeftOut | None = None


class RegressionModel(Protocol[ResponseT]):
    """A regression model with its constants, which do not depend on the data."""

    def __hash__(self) -> int:
        """Of its constants: equal models have the same ground."""
        ...

    @property
    def mechanism(self) -> str:
        """The mechanism's name, as a guarantee states it."""
        ...

    @property
    def reference(self) -> str:
        """The literature that a guarantee cites."""
        ...

    @property
    def answers(self) -> str:
        """The reply's first line (domain.plan.Planned)."""
        ...

    @property
    def cut_words(self) -> str:
        """How the target is asked for that few records do not decide (fitting.trust)."""
        ...

    @property
    def radius(self) -> float:
        """R² for each coefficient."""
        ...

    @property
    def tuning(self) -> float | None:
        """The tuning constant of the reply; None where scores are not cut."""
        ...

    @property
    def leaves_out(self) -> bool:
        """Whether levels that may have no record are left out (fitting.empty_levels): not of a fit
        that is proved for all records and a planned number of coefficients."""
        ...

    @property
    def nanoseconds(self) -> int:
        """The planned time of a record's score beyond that of its products."""
        ...

    @property
    def of_persons(self) -> bool:
        """Whether scores are summed by person where the unit has several rows
        (fitting.person_scores).
        """
        ...

    def check(self, response: Term) -> None:
        """Raises InvalidQuery for a response whose declared bounds the model cannot have."""

    def response(self, term: Term, values: FloatArray) -> ResponseT:
        """From the responses (rows,) of public rows."""
        ...

    def location(self, response: ResponseT, *, intercept: bool) -> Location:
        """Centre and scale of the standardised response."""
        ...

    def level(self, response: ResponseT, *, intercept: bool) -> float:
        """The predictor of a typical record, standardised."""
        ...

    def tuned(self, sizes: Sizes, rho: int, ground: FitGround[ResponseT]) -> Self:
        """With constants for the smallest error at these sizes, where the query asks for them."""
        ...

    def family(self, ground: FitGround[ResponseT]) -> ScoreFamily:
        """The scores of its steps and the measure of its scale."""
        ...

    def signal(self, ground: FitGround[ResponseT]) -> Signal:
        """What the budget needs to know of the score (fitting.budget)."""
        ...

    def notes(self, ground: FitGround[ResponseT]) -> list[str]:
        """What a forecast has to say of the response."""
        ...

    def adjusted(self, coding: Coding, fit: StandardFit) -> StandardFit:
        """The released fit as it is to be reported."""
        ...

    def described(
        self,
        ground: FitGround[ResponseT],
        fit: StandardFit,
        radius_squared: float,
        result: Mapping[str, Any],
    ) -> dict[str, Any]:
        """What the model's reply says beside `found`, or in its place."""
        ...


def ground_of(
    design: Design, facts: DatasetFacts, model: RegressionModel[ResponseT], *, masked: bool = True
) -> FitGround[ResponseT] | None:
    """The public ground of the fit of a design, without levels that may have no record where the
    model allows for that; None where no profile covers its columns."""
    fitted = without_empty_levels(design, facts) if model.leaves_out else Fitted(design)
    rows = draw_public_rows(fitted.design, facts, masked=masked)
    if rows is None or design.response is None:
        return None
    found = _ground(fitted.design, design.response, rows, model)
    if fitted.left_out is not None:
        found = replace(found, left_out=fitted.left_out)
    if not tells_tails(facts, design):
        return found
    return replace(found, distances=rows.y - np.median(rows.y))


@lru_cache(maxsize=_KEPT)
def _ground(
    design: Design, term: Term, rows: PublicRows, model: RegressionModel[ResponseT]
) -> FitGround[ResponseT]:
    """The start is the typical predictor at the intercept; without one, what comes nearest to it.

    The last few are kept: one question is planned at several epsilons, and the rows are the same
    object then (public.rows).
    """
    response, intercept = model.response(term, rows.y), design.intercept
    coding = code_design(design, term, rows, model.location(response, intercept=intercept))
    X, start = coding.standardised(rows.X), np.zeros(coding.size)
    middle = 0.0
    if design.offset is not None:  # of a link log
        middle = float(logsumexp(rows.offset) - np.log(len(X)))
    level = np.full(len(X), model.level(response, intercept=intercept) - middle)
    if intercept:
        start[0] = level[0]
    else:
        start = np.linalg.lstsq(X, level, rcond=_SINGULAR)[0]
    spread = float(np.hypot(1.0, np.sqrt(np.mean((level - X @ start) ** 2))))
    offset = None if design.offset is None else rows.offset
    coordinates = public_coordinates(X)
    return FitGround(coding, coordinates, response, rows.share, start, spread, offset, rows.unequal)
