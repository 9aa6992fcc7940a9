# SPDX-License-Identifier: Apache-2.0
"""Reliability of a sum of items from a study's moments: Cronbach's α and McDonald's ω.

α = k/(k − 1)·(1 − tr K/1ᵀK1) has the gradient k/(k − 1)·(tr K·11ᵀ/(1ᵀK1)² − I/1ᵀK1) (Cronbach
1951). ω = (Σλ)²ψ/((Σλ)²ψ + Σθ) of one factor behind all items (McDonald 1999). Intervals count the
noise by the delta method, what clipping may have moved, and sampling by the normal law; they are
made of log(1 − α), whose law is nearer to the normal (Bonett 2002).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from reticent._errors import InvalidFormula, NotEstimable
from reticent._study.moments import FloatArray, Moments
from reticent._study.path_fit import Array, fitted, jacobian, movement, start, structure
from reticent._study.path_text import COVARIANCE, LOADING, Path, PathModel
from reticent._study.structural import bare, clear_covariance

_FACTOR = "common factor"


@dataclass(frozen=True, slots=True)
class Reliability:
    """α and ω of the sum of items, with standard errors (bse; of the noise alone: privacy_bse).

    ω is NaN with fewer than three items, or where one factor behind them is an improper solution.
    """

    items: tuple[str, ...]
    alpha: float
    alpha_bse: float
    alpha_privacy_bse: float
    omega: float
    omega_bse: float
    omega_privacy_bse: float
    notes: tuple[str, ...] = ()

    def conf_int(self, which: str = "alpha", alpha: float = 0.05) -> tuple[float, float]:
        """(lower, upper) of "alpha" or "omega"."""
        value, bse = (
            (self.alpha, self.alpha_bse) if which == "alpha" else (self.omega, self.omega_bse)
        )
        half = float(ndtri(1 - alpha / 2)) * bse / (1 - value)
        return 1 - (1 - value) * float(np.exp(half)), 1 - (1 - value) * float(np.exp(-half))

    def __repr__(self) -> str:
        said = [f"Reliability of {' + '.join(self.items)}"]
        for name, value in (("alpha", self.alpha), ("omega", self.omega)):
            low, high = self.conf_int(name)
            said.append(f"{name} {value:.3f} [{low:.3f}, {high:.3f}]")
        return "\n".join([*said, *self.notes])


def reliability(moments: Moments, places: Sequence[int]) -> Reliability:
    """Of the sum of the columns at these places. Raises InvalidFormula for fewer than two."""
    if len(places) < 2:
        raise InvalidFormula("Reliability is of two items at least.")
    units = moments.scales[list(places)]
    K = clear_covariance(moments, places) * np.outer(units, units)
    names = tuple(moments.names[p] for p in places)
    alpha = _with_errors(moments, places, units, _alpha(K), _alpha_slope(K))
    notes = bare(moments, places)
    try:
        omega, slope = _omega(K, names)
        found = _with_errors(moments, places, units, omega, slope)
    except NotEstimable as refusal:
        found = (np.nan, np.nan, np.nan)
        notes = [*notes, f"No omega. {refusal}"]
    if bare(moments, places):
        alpha, found = (alpha[0], np.nan, np.nan), (found[0], np.nan, np.nan)
    return Reliability(
        names, alpha[0], alpha[1], alpha[2], found[0], found[1], found[2], tuple(notes)
    )


def _with_errors(
    moments: Moments,
    places: Sequence[int],
    units: FloatArray,
    value: float,
    slope: FloatArray,
) -> tuple[float, float, float]:
    found = moments.carried(places, np.array([value]), [slope * np.outer(units, units)])
    return value, float(found.bse[0]), float(np.sqrt(max(found.privacy[0, 0], 0.0)))


def _alpha(K: FloatArray) -> float:
    k = len(K)
    return float(k / (k - 1) * (1 - np.trace(K) / K.sum()))


def _alpha_slope(K: FloatArray) -> FloatArray:
    k, total = len(K), K.sum()
    return np.asarray(k / (k - 1) * (np.trace(K) / total**2 - np.eye(k) / total))


def _omega(K: FloatArray, names: tuple[str, ...]) -> tuple[float, FloatArray]:
    """ω and its gradient (k, k) in K. Raises NotEstimable."""
    k = len(names)
    if k < 3:
        raise NotEstimable("One factor behind two items is not identified: use three or more.")
    paths = (
        *(Path(_FACTOR, LOADING, name) for name in names),
        Path(_FACTOR, COVARIANCE, _FACTOR, fixed=1.0),
        *(Path(name, COVARIANCE, name) for name in names),
    )
    model = PathModel((_FACTOR,), {name: i for i, name in enumerate(names)}, paths, (), {})
    S = structure(model)
    theta = fitted(S, start(S, model, K), K)
    if np.min(theta[k:]) < 0:
        raise NotEstimable("One factor behind these items has a residual variance below 0.")

    def omega(t: Array) -> Array:
        common = t[:k].sum() ** 2
        return np.array([common / (common + t[k:].sum())])

    slope = np.tensordot(jacobian(omega, theta), movement(S, theta, K), 1)[0]
    return float(omega(theta)[0]), np.asarray(slope)
