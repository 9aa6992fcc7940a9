# SPDX-License-Identifier: Apache-2.0
"""From standardised units to the data's: coefficients, covariance, intervals, flags, warnings.

ỹ = x̃ᵀθ with x̃_j = (x_j − a_j)/b_j and ỹ = (y − m)/s₀ gives β_j = s₀θ_j/b_j and, with an
intercept, β₀ = m + s₀(θ₀ − Σ θ_j a_j/b_j): β = Lθ + o with a public L (q, q), so cov β = L cov θ
Lᵀ.

A coefficient that is not identifiable, or whose noise is its standard error (fitting.trust), keeps
its number and standard error in the covariance, but has no p-value (null) and no interval ([null,
null]). `directions` tells the first of any linear combination.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting import trust
from reticent_server.fitting.coding import Coding, TermCoding
from reticent_server.fitting.results import Cut, OpenInterval
from reticent_server.fitting.row_tail import RowCut
from reticent_server.fitting.standard_fit import StandardFit
from reticent_server.fitting.trust import SOUND, CoefficientFlags, TrustVerdict
from reticent_server.numerics.matrices import rounded
from reticent_server.numerics.short_covariance import shortened

BoolArray = NDArray[np.bool_]
EVEN_WEIGHTS: dict[str, Any] = {"matrix": [], "radius_squared": 1e300}
"""Of a fit in which every record weighs 1."""

# of the entries of A; one whose terms are far from 0 for their spread loses half of them in Ax
WEIGHTING_DIGITS = 12

MOST_DEGREES = 1e6  # of freedom: a t law is normal to the digits of a reply


@dataclass(frozen=True, slots=True, eq=False)
class BackTransform:
    """β = Lθ + o: L (q, q) and o (q,)."""

    matrix: FloatArray
    offset: FloatArray

    def coefficients(self, theta: FloatArray) -> FloatArray:
        """β (q,) in the units of the data, of θ (q,)."""
        return np.asarray(self.matrix @ theta + self.offset)

    def covariance(self, C: FloatArray) -> FloatArray:
        """(q, q) in the units of the data, of C (q, q) of θ."""
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
    """A fit in the units of the data. covariance and privacy (q, q). degrees: (q,) of freedom of
    the variances, where these are cluster-robust; None for normal intervals. allowance: (q,)
    standard errors for what a cut takes; None without one.
    """

    coefficients: FloatArray
    covariance: FloatArray
    privacy: FloatArray
    sampling: FloatArray
    directions: list[dict[str, Any]]
    flags: CoefficientFlags
    degrees: FloatArray | None = None
    allowance: FloatArray | None = None

    @property
    def estimable(self) -> BoolArray:
        """(q,) which coefficients have an interval."""
        return self.flags.estimable

    @property
    def standard_errors(self) -> FloatArray:
        """(q,) in the units of the data, with the noise."""
        return roots(self.covariance)


def reported(coding: Coding, fit: StandardFit) -> Reported:
    """The fit in the units of the data."""
    back = back_transform(coding)
    privacy, sampling = back.covariance(fit.privacy), back.covariance(fit.sampling)
    directions = fit.directions.mapped(back.matrix)
    errors = directions.flags, roots(privacy), roots(sampling)
    if fit.taken is None or fit.cut is None:
        allowance, flags = None, trust.coefficients(*errors).without_sparse(fit.sparse)
    else:
        allowance = roots(back.covariance(fit.taken))
        flags = trust.cut_coefficients(*errors, fit.events, told=fit.cut.told)
    degrees = None
    if fit.freedom is not None:
        degrees = fit.freedom.degrees(back.matrix, np.diag(sampling), np.diag(privacy + sampling))
    return Reported(
        coefficients=back.coefficients(fit.theta),
        covariance=privacy + sampling,
        privacy=privacy,
        sampling=sampling,
        directions=directions.shown,
        flags=flags,
        degrees=degrees,
        allowance=allowance,
    )


def fit_result(
    coding: Coding,
    fit: StandardFit,
    *,
    level: float,
    n: int,
    radius_squared: float,
    instead: str,
) -> dict[str, Any]:
    """What a reply says of any fit of a design. instead: as of tail_warnings."""
    estimates = reported(coding, fit)
    beta, se, ok = estimates.coefficients, estimates.standard_errors, estimates.estimable
    return {
        "terms": list(coding.design.names),
        **_baselines(coding),
        "coefficients": beta.tolist(),
        "standard_errors": se.tolist(),
        "covariance": shortened(estimates.covariance),
        "confidence_level": level,
        "confidence_intervals": intervals(beta, se, level, ok, estimates.degrees),
        "p_values": p_values(beta, se, ok, estimates.degrees),
        "privacy_standard_errors": roots(estimates.privacy).tolist(),
        "estimable": [bool(x) for x in ok],
        "directions": estimates.directions,
        "weighting": weighting(coding, fit.transform, radius_squared)
        if fit.cut is None
        else EVEN_WEIGHTS,
        "n": n,
        "warnings": [
            *cut_warnings(coding, estimates, fit.cut, instead),
            *warnings(coding, estimates, fit.verdict),
        ],
        **_cut(estimates, fit.cut),
        **_records(coding, fit),
        **_clusters(estimates, fit),
    }


def _baselines(coding: Coding) -> dict[str, Any]:
    """The levels that have no column, of a design with factors."""
    return {"baselines": dict(found)} if (found := coding.design.baselines) else {}


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
    """What a reply says of persons whose scores were summed first, and of public clusters."""
    if fit.freedom is None or estimates.degrees is None:
        return {}
    degrees = np.minimum(estimates.degrees, MOST_DEGREES).tolist()
    return {**fit.freedom.told, "degrees_of_freedom": degrees}


def weighting(coding: TermCoding, transform: FloatArray, radius_squared: float) -> dict[str, Any]:
    """The weights of W (q, q): the matrix A (q, q) and R² of a record's weight min(1, R²/‖Ax‖²), x
    its design row in the data's units. A is triangular: ‖Ax‖ is the same for all A with the same
    AᵀA."""
    matrix = transform / coding.scales
    if coding.design.intercept:
        matrix[:, 0] -= transform @ (coding.centres / coding.scales)
    triangular = np.linalg.qr(matrix)[1]
    return {"matrix": rounded(triangular, WEIGHTING_DIGITS), "radius_squared": radius_squared}


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
    """Two-sided p-values of β_j = 0, normal or of t laws with degrees (q,) of freedom; None where
    not identifiable.
    """
    z = -np.abs(beta) / np.maximum(se, np.finfo(float).tiny)
    p = 2 * (ndtr(z) if degrees is None else stdtr(degrees, z))
    return [float(value) if ok else None for value, ok in zip(p, estimable, strict=True)]


def warnings(coding: Coding, estimates: Reported, verdict: TrustVerdict = SOUND) -> list[str]:
    """What a reader of the intervals must know, in sentences; from released values only."""
    if not verdict.intervals:
        return list(verdict.sentences)
    names, deviations = coding.design.names, coding.design.deviations
    return [*verdict.sentences, *estimates.flags.warnings(names, deviations=deviations)]


def cut_warnings(
    coding: Coding, estimates: Reported, cut: RowCut | None, instead: str
) -> list[str]:
    """What a cut takes of which coefficients, in sentences."""
    if cut is None or estimates.allowance is None:
        return []
    share = estimates.allowance / np.maximum(estimates.standard_errors, np.finfo(float).tiny)
    return estimates.flags.tail_warnings(coding.design.names, share, cut.beyond, instead)


def roots(C: FloatArray) -> FloatArray:
    """(q,) square roots of the diagonal."""
    return np.asarray(np.sqrt(np.maximum(np.diag(C), 0.0)))
