# SPDX-License-Identifier: Apache-2.0
"""From standardised units to the data's: coefficients, covariance, intervals, flags, warnings.

ỹ = x̃ᵀθ with x̃_j = (x_j − a_j)/b_j and ỹ = (y − m)/s₀ gives β_j = s₀θ_j/b_j and, with an intercept,
β₀ = m + s₀(θ₀ − Σ θ_j a_j/b_j): β = Lθ + o with a public L (q, q), so cov β = L cov θ Lᵀ.

A coefficient that is not identifiable, or whose noise is above five sampling standard errors, keeps its number
and standard error in the covariance, but has no p-value (null) and no interval ([null, null]).
`directions` tells the first of any linear combination.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.coding import Coding, TermCoding
from reticent_server.fitting.results import Cut, OpenInterval
from reticent_server.fitting.row_tail import RowCut
from reticent_server.fitting.standard_fit import StandardFit

BoolArray = NDArray[np.bool_]
UNBOUNDED = 1e300  # squared radius at which every record weighs 1

DOMINATED = 3.0  # privacy over sampling standard error above which a reader is told
FEW_PERSONS = (
    "No intervals are given: for the persons and their largest number of rows the noise is too large a part of what "
    "standard errors are made of. A larger epsilon, fewer terms or a smaller max_rows would help."
)
UNSETTLED = (
    "No intervals are given: a log link bends, and with so much noise the fit may still be on the bend. A larger epsilon or fewer "
    "terms would help."
)
SAME_IN_ALL_ROWS = (
    "With person effects a term that is the same in all rows of a person, or nearly, is not identifiable: nothing of it is "
    "left without the person's mean."
)
MOST_DEGREES = 1e6  # of freedom: a t law is normal to the digits of a reply
LEANS = 0.5  # of a standard error: an allowance for the cut that a reader is told of
HEAVY = 'Ask for loss="huber", for a logarithm of what has the long tail, or for a larger epsilon.'
MOST_PLAIN_NOISE = 7.0  # the same of least squares, whose intervals hold with any noise
MOST_NOISE = (
    5.0  # privacy over sampling standard errors; above it an interval's width is the noise alone
)


@dataclass(frozen=True, slots=True, eq=False)
class BackTransform:
    """β = Lθ + o: L (q, q) and o (q,)."""

    matrix: FloatArray
    offset: FloatArray

    def coefficients(self, theta: FloatArray) -> FloatArray:
        return np.asarray(self.matrix @ theta + self.offset)

    def covariance(self, C: FloatArray) -> FloatArray:
        return np.asarray(self.matrix @ C @ self.matrix.T)


def back_transform(coding: Coding) -> BackTransform:
    """The public map from standardised to reported coefficients."""
    y, q = coding.response_location, coding.size
    matrix = np.diag(y.scale / coding.scales)
    offset = np.zeros(q)
    if coding.design.intercept:
        matrix[0] -= y.scale * coding.centres / coding.scales
        offset[0] = y.centre
    return BackTransform(matrix, offset)


@dataclass(frozen=True, slots=True, eq=False)
class Reported:
    """A fit in the units of the data. covariance and privacy (q, q); estimable (q,). degrees: (q,) of freedom of the
    variances, where these are cluster-robust; None for normal intervals. known: whether there are intervals at all. heavy: (q,) those that a few records decide. allowance: (q,)
    standard errors for what a cut takes; None without one."""

    coefficients: FloatArray
    covariance: FloatArray
    privacy: FloatArray
    sampling: FloatArray
    directions: list[dict[str, Any]]
    estimable: BoolArray
    degrees: FloatArray | None = None
    known: bool = True
    heavy: BoolArray | None = None
    allowance: FloatArray | None = None

    @property
    def standard_errors(self) -> FloatArray:
        return roots(self.covariance)


def reported(coding: Coding, fit: StandardFit) -> Reported:
    """The fit in the units of the data."""
    back = back_transform(coding)
    privacy, sampling = back.covariance(fit.privacy), back.covariance(fit.sampling)
    directions = fit.directions.mapped(back.matrix)
    taken = None if fit.taken is None else back.covariance(fit.taken)
    heavy = None
    if taken is not None and fit.cut is not None:
        heavy = fit.cut.decides(roots(taken), roots(privacy + sampling - taken))
    most = MOST_NOISE if fit.cut is None else MOST_PLAIN_NOISE
    above_noise = roots(privacy) <= most * roots(sampling)
    degrees, enough = None, True
    if fit.freedom is not None:
        degrees = fit.freedom.degrees(back.matrix, np.diag(sampling), np.diag(privacy + sampling))
        enough = fit.freedom.known
    return Reported(
        coefficients=back.coefficients(fit.theta),
        covariance=privacy + sampling,
        privacy=privacy,
        sampling=sampling,
        directions=directions.shown,
        estimable=directions.flags & above_noise & ~_flags(heavy, len(privacy)),
        degrees=degrees,
        known=enough,
        heavy=heavy,
        allowance=None if taken is None else roots(taken),
    )


def fit_result(
    coding: Coding, fit: StandardFit, *, level: float, n: int, radius_squared: float
) -> dict[str, Any]:
    """What a reply says of any fit of a design."""
    estimates = reported(coding, fit)
    beta, se, ok = estimates.coefficients, estimates.standard_errors, estimates.estimable
    return {
        "terms": list(coding.design.names),
        "coefficients": beta.tolist(),
        "standard_errors": se.tolist(),
        "covariance": estimates.covariance.tolist(),
        "confidence_level": level,
        "confidence_intervals": intervals(beta, se, level, ok, estimates.degrees),
        "p_values": p_values(beta, se, ok, estimates.degrees),
        "privacy_standard_errors": roots(estimates.privacy).tolist(),
        "estimable": [bool(x) for x in ok],
        "directions": estimates.directions,
        "weighting": weighting(
            coding, fit.transform, radius_squared if fit.cut is None else UNBOUNDED
        ),
        "n": n,
        "warnings": warnings(coding, estimates, fit.cut) if fit.settled else [UNSETTLED],
        **_cut(estimates, fit.cut),
        **_records(coding, fit),
        **_clusters(estimates, fit),
    }


def _cut(estimates: Reported, cut: RowCut | None) -> dict[str, Any]:
    """What a reply says of scores that were cut as a whole."""
    if cut is None or estimates.allowance is None:
        return {}
    return {
        "cut": Cut(
            records_beyond=cut.beyond,
            tail_index=cut.alpha if cut.alpha > 0 else None,
            allowances=estimates.allowance.tolist(),
        )
    }


def _records(coding: Coding, fit: StandardFit) -> dict[str, Any]:
    """The noisy number of records in use, or the sum of their weights."""
    weight = coding.design.weight
    if weight is not None:
        return {"sum_of_weights": fit.count * weight.largest}
    return {"records_in_use": fit.count} if coding.design.masked else {}


def _clusters(estimates: Reported, fit: StandardFit) -> dict[str, Any]:
    """What a reply says of persons whose scores were summed first."""
    if fit.freedom is None or estimates.degrees is None:
        return {}
    clusters = fit.freedom.clusters
    return {
        "clusters": clusters.persons,
        "effective_clusters": clusters.effective,
        "degrees_of_freedom": np.minimum(estimates.degrees, MOST_DEGREES).tolist(),
        "clipped_share": clusters.clipped,
    }


def without_intervals(result: Mapping[str, Any]) -> dict[str, Any]:
    """What changes in a result whose coefficients are all given without intervals."""
    q = len(result["terms"])
    return {
        "estimable": [False] * q,
        "confidence_intervals": [(None, None)] * q,
        "p_values": [None] * q,
    }


def weighting(coding: TermCoding, transform: FloatArray, radius_squared: float) -> dict[str, Any]:
    """Of W (q, q): the matrix A (q, q) and R² of a record's weight min(1, R²/‖Ax‖²), x its design row in the data's units."""
    matrix = transform / coding.scales
    if coding.design.intercept:
        matrix[:, 0] -= transform @ (coding.centres / coding.scales)
    return {"matrix": matrix.tolist(), "radius_squared": radius_squared}


def intervals(
    beta: FloatArray,
    se: FloatArray,
    level: float,
    estimable: BoolArray,
    degrees: FloatArray | None = None,
) -> list[OpenInterval]:
    """β ± z se, with degrees (q,) of freedom ± t se; (None, None) where not identifiable."""
    tail = (1 + level) / 2
    half = (float(ndtri(tail)) if degrees is None else stdtrit(degrees, tail)) * se
    return [
        (float(b - h), float(b + h)) if ok else (None, None)
        for b, h, ok in zip(beta, half, estimable, strict=True)
    ]


def p_values(
    beta: FloatArray, se: FloatArray, estimable: BoolArray, degrees: FloatArray | None = None
) -> list[float | None]:
    """Two-sided p-values of β_j = 0, normal or of t laws with degrees (q,) of freedom; None where not identifiable."""
    z = -np.abs(beta) / np.maximum(se, np.finfo(float).tiny)
    p = 2 * (ndtr(z) if degrees is None else stdtr(degrees, z))
    return [float(value) if ok else None for value, ok in zip(p, estimable, strict=True)]


def warnings(coding: Coding, estimates: Reported, cut: RowCut | None = None) -> list[str]:
    """What a reader of the intervals must know, in sentences; from released values only."""
    if not estimates.known:
        return [FEW_PERSONS]
    terms = np.array(coding.design.names)
    said = [] if cut is None else _tails(terms, estimates, cut)
    names = terms[~estimates.estimable & ~_flags(estimates.heavy, len(terms))].tolist()
    if names:
        said.append(
            "Not identifiable at this epsilon (collinear, constant or too rare: the data's information is "
            "below the noise): " + ", ".join(names) + "."
        )
        if coding.design.deviations:
            said.append(SAME_IN_ALL_ROWS)
    noisy = (roots(estimates.privacy) > DOMINATED * roots(estimates.sampling)) & estimates.estimable
    if noisy.any():
        which = [t for t, x in zip(coding.design.names, noisy, strict=True) if x]
        said.append(
            "Privacy noise dominates the standard errors of "
            + ", ".join(which)
            + ": a larger epsilon would help."
        )
    return said


def _flags(heavy: BoolArray | None, q: int) -> BoolArray:
    """(q,) none of them where nothing was asked."""
    return np.zeros(q, dtype=bool) if heavy is None else heavy


def _tails(terms: NDArray[np.str_], estimates: Reported, cut: RowCut) -> list[str]:
    """Which coefficients a few records decide, and which intervals allow for it."""
    said = []
    heavy = _flags(estimates.heavy, len(terms))
    if heavy.any():
        which = ", ".join(terms[heavy].tolist())
        said.append(f"About {cut.beyond:.0f} records decide {which}. {HEAVY}")
    if estimates.allowance is not None:
        leaning = estimates.estimable & (estimates.allowance > LEANS * estimates.standard_errors)
        if leaning.any():
            which = ", ".join(terms[leaning].tolist())
            said.append(
                f"Half or more of the standard errors of {which} allows for about {cut.beyond:.0f} records with "
                "the largest scores, which are cut."
            )
    return said


def roots(C: FloatArray) -> FloatArray:
    """(q,) square roots of the diagonal."""
    return np.asarray(np.sqrt(np.maximum(np.diag(C), 0.0)))
