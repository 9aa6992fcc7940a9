# SPDX-License-Identifier: Apache-2.0
"""The lasso's path from a Gram matrix: ½θᵀGθ − gᵀθ + λ|θ|₁ by coordinate descent (Friedman, Hastie
& Tibshirani 2010).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent import _drawing, _optional
from reticent._study.interruption import checkpoint
from reticent._study.model import StudyModel
from reticent._study.moments import FloatArray, Moments

_POINTS, _SMALLEST = 60, 1e-3
"""Values of λ, down to this share of the one at which every slope is 0."""
_SWEEPS, _SETTLED = 2_000, 1e-9
_LEAST = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class LassoPath:
    """penalties (k,), decreasing, in standard deviations of the response; coefficients (k, p) in
    the units of the data.

    noise: λ below which what enters is likely to be noise: the largest of p slopes' noise in a
    correlation with the residual, √(2 ln p) standard deviations. No intervals: they would have to
    know of the selection.
    """

    names: tuple[str, ...]
    penalties: FloatArray
    coefficients: FloatArray
    noise: float

    def to_frame(self) -> Any:
        """A pandas.DataFrame with one row a penalty; needs pandas."""
        return _optional.pandas().DataFrame(
            self.coefficients, index=self.penalties, columns=self.names
        )

    def plot(self, ax: Any = None) -> Any:
        """Coefficients by penalty; needs matplotlib, gives the Axes."""
        axes = _drawing.axes_of(ax)
        for k, name in enumerate(self.names):
            if name != "Intercept":
                axes.plot(self.penalties, self.coefficients[:, k], label=name)
        axes.axvline(self.noise, color=_drawing.TOTAL, linestyle="--", label="noise")
        axes.set(xscale="log", xlabel="penalty", ylabel="coefficient")
        axes.legend()
        return axes


def lasso_path(moments: Moments, model: StudyModel) -> LassoPath:
    """Of a model with an intercept, which is not penalised; slopes are penalised in standard
    deviations of their columns.
    """
    S = moments.sums
    gram, cross = model.X @ S @ model.X.T, model.X @ S @ model.y
    G = gram[1:, 1:] / gram[0, 0] - np.outer(gram[1:, 0], gram[0, 1:]) / gram[0, 0] ** 2
    g = cross[1:] / gram[0, 0] - gram[1:, 0] * cross[0] / gram[0, 0] ** 2
    size = np.sqrt(np.maximum(np.diag(G), _LEAST))
    values, vectors = np.linalg.eigh(G / np.outer(size, size))
    G = (vectors * np.maximum(values, _LEAST)) @ vectors.T
    g = g / size
    top = float(np.max(np.abs(g))) if len(g) else 1.0
    penalties = top * np.geomspace(1.0, _SMALLEST, _POINTS)
    theta, path = np.zeros(len(g)), []
    for penalty in penalties:
        theta = _descended(G, g, penalty, theta)
        slopes = theta / size
        first = (cross[0] - gram[0, 1:] @ slopes) / gram[0, 0]
        path.append(model.matrix @ np.append(first, slopes) + model.offset)
    fit = moments.least_squares(model.y, model.X)
    noisy = np.diag(moments.noise(fit.residual, model.X, np.eye(len(model.X))))
    sd = np.sqrt(float(np.max(noisy[1:], initial=0.0)))
    noise = float(np.hypot(sd, np.sqrt(fit.variance / moments.records))) * np.sqrt(
        2 * np.log(max(len(g), 2))
    )
    return LassoPath(model.names, penalties, np.array(path), float(noise))


def _descended(G: FloatArray, g: FloatArray, penalty: float, start: FloatArray) -> FloatArray:
    theta = start.copy()
    for _ in range(_SWEEPS):
        checkpoint()
        before = theta.copy()
        for j in range(len(g)):
            rest = g[j] - G[j] @ theta + G[j, j] * theta[j]
            theta[j] = np.sign(rest) * max(abs(rest) - penalty, 0.0) / max(G[j, j], _LEAST)
        if np.max(np.abs(theta - before), initial=0.0) < _SETTLED:
            break
    return theta
