# SPDX-License-Identifier: Apache-2.0
"""The public rows that all forecasts of a design go through, with what depends on nothing else.

A forecast is made at several amounts of ρ, for an ε that is looked for: moments of the rows and the
prior of the way are worked out once for all of them.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

import numpy as np

from reticent_server.domain.steps import FloatArray, Released
from reticent_server.fitting.expected_way import ExpectedWay, triangular_root
from reticent_server.fitting.filter import prior_of
from reticent_server.fitting.public.coordinates import (
    USUAL,
    WIDE,
    Coordinates,
    clipped_moment,
    moment_spread,
)
from reticent_server.fitting.whitening import (
    SMALLEST_MOMENT,
    Whitening,
    on_average,
    unwhitened_of,
    whitened,
    whitened_as_expected,
    with_sampling,
)

FORECAST_ROWS = 1024  # of the public rows that a forecast uses: its moments are right to 3 %
_KEPT = 3  # designs, of 2 MB each with 256 terms: those whose coordinates are kept
_KEPT_MOMENTS = 3 * _KEPT  # of .5 MB: a plan has one or two rounds, and a first radius


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedMoment:
    """K (q, q), the clipped moment of public rows. variances: (q,) the diagonal of K⁻¹; None where
    there is a direction without any.
    """

    K: FloatArray
    variances: FloatArray | None


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedGround:
    """start: the coordinates before any release, with the rows of a forecast alone. rows: the same,
    of designs of more than USUAL columns in single precision (fitting.public.coordinates), for what
    each step of each forecast makes of them.
    """

    start: Coordinates
    rows: FloatArray

    def before(self, radius_squared: float) -> Whitening:
        """Before any round."""
        moment = _moment(self, radius_squared)
        start = self.start if moment.variances is None else replace(self.start, rows=self.rows)
        return unwhitened_of(start, moment.K)

    def after_round(
        self,
        before: Whitening,
        rounds: int,
        sd: float,
        n: float,
        radius_squared: float,
        *,
        last: bool,
    ) -> Whitening:
        """After a round whose release is what the rows lead to expect. rounds: before it. sd: of
        its noise, of n records. last: no further round follows.

        Rows of which a direction has none take the round's own way, and are turned.
        """
        if self._has(before.rows) and before.uninformed:
            moment = _moment(self, radius_squared)
            variances = moment.variances
            if variances is not None:
                # the axes of a second round may point anywhere, as those of the first did not
                seen = on_average(variances, before.free) if rounds else variances
                return whitened_as_expected(before, moment.K, seen, sd / n)
        released = Released(n * clipped_moment(before.rows, radius_squared), sd)
        return whitened(before, released, n, radius_squared, last=last)

    def after_part(self, before: Whitening, rows: float, radius_squared: float) -> Whitening:
        """After a round over a part of so many rows (fitting.whitening.sampled)."""
        if self._has(before.rows):
            return with_sampling(before, _spread(self, radius_squared) / np.sqrt(rows))
        return with_sampling(before, moment_spread(before.rows, radius_squared) / np.sqrt(rows))

    def _has(self, rows: FloatArray) -> bool:
        return rows is self.rows or rows is self.start.rows

    def way(self, rows: FloatArray, offset: float) -> ExpectedWay:
        """Before any step (fitting.filter.prior), of these rows (rows, q) or the same, turned."""
        root = _prior_root(self) if self._has(rows) else triangular_root(prior_of(rows))
        return ExpectedWay(offset * root)


@lru_cache(maxsize=_KEPT)
def expected_ground(coordinates: Coordinates) -> ExpectedGround:
    """The public rows of forecasts in the coordinates of a design; one object for all forecasts of
    it. Twice as many rows, or all, where FORECAST_ROWS have none in some direction, such as a level
    among hundreds."""
    whole, radius = coordinates.rows, WIDE * coordinates.rows.shape[1]
    numbers = [k for k in (FORECAST_ROWS, 2 * FORECAST_ROWS, len(whole)) if k <= len(whole)]
    usable = (k for k in numbers if not _singular(whole[:k], radius))
    rows = whole[: next(usable, FORECAST_ROWS)]
    quick: FloatArray = (
        rows if rows.shape[1] <= USUAL else cast(FloatArray, rows.astype(np.float32))
    )
    return ExpectedGround(replace(coordinates, rows=rows), quick)


def _singular(rows: FloatArray, radius_squared: float) -> bool:
    return _of(rows, radius_squared).variances is None


@lru_cache(maxsize=_KEPT_MOMENTS)
def _moment(ground: ExpectedGround, radius_squared: float) -> ExpectedMoment:
    return _of(ground.start.rows, radius_squared)


def _of(rows: FloatArray, radius_squared: float) -> ExpectedMoment:
    K = clipped_moment(rows, radius_squared)
    try:
        np.linalg.cholesky(K - SMALLEST_MOMENT * np.eye(len(K)))
    except np.linalg.LinAlgError:
        return ExpectedMoment(K, None)
    return ExpectedMoment(K, np.diag(np.linalg.inv(K)))


@lru_cache(maxsize=_KEPT_MOMENTS)
def _spread(ground: ExpectedGround, radius_squared: float) -> FloatArray:
    return moment_spread(ground.start.rows, radius_squared)


@lru_cache(maxsize=_KEPT)
def _prior_root(ground: ExpectedGround) -> FloatArray:
    return triangular_root(prior_of(ground.start.rows))
