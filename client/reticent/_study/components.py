# SPDX-License-Identifier: Apache-2.0
"""Principal components and common factors of a study's correlations."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent import _drawing, _optional
from reticent._study.interruption import checkpoint
from reticent._study.moments import FloatArray, Moments

_ROUNDS = 200
"""Most iterations of a communality or a rotation; both settle in some 50."""
_SETTLED = 1e-8
_LEAST = 1e-6
"""Least unique variance and least eigenvalue that a correlation matrix is taken to have."""


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """Principal components of k standardised columns. eigenvalues, bse, privacy_bse (k,),
    decreasing; vectors (k, k) by columns.

    Noise spreads eigenvalues: the smallest are too small (they may be negative), the largest too
    large; `above_noise` counts those that stand clear of the noise's largest.
    """

    names: tuple[str, ...]
    eigenvalues: FloatArray
    vectors: FloatArray
    bse: FloatArray
    privacy_bse: FloatArray
    noise: float

    @property
    def explained(self) -> FloatArray:
        """(k,) shares of the total variance."""
        return np.asarray(self.eigenvalues / len(self.names))

    @property
    def above_noise(self) -> int:
        """How many eigenvalues are larger than the norm of the noise."""
        return int(np.sum(self.eigenvalues > self.noise))

    def to_frame(self) -> Any:
        """Loadings as a pandas.DataFrame; needs pandas."""
        columns = [f"PC{i + 1}" for i in range(len(self.names))]
        return _optional.pandas().DataFrame(self.vectors, index=self.names, columns=columns)

    def plot(self, ax: Any = None) -> Any:
        """Eigenvalues with 95 % intervals; needs matplotlib, gives the Axes."""
        axes, at = _drawing.axes_of(ax), np.arange(1, len(self.names) + 1)
        axes.errorbar(at, self.eigenvalues, 1.96 * self.bse, fmt="o-", color=_drawing.SAMPLING)
        axes.axhline(1.0, color=_drawing.TOTAL)
        axes.set(xlabel="component", ylabel="eigenvalue")
        return axes


@dataclass(frozen=True, slots=True, eq=False)
class Factors:
    """Common factors: loadings (k, m) after a varimax rotation, uniqueness (k,). No standard
    errors: a bootstrap would need the records.
    """

    names: tuple[str, ...]
    loadings: FloatArray
    uniqueness: FloatArray

    def to_frame(self) -> Any:
        """A pandas.DataFrame; needs pandas."""
        columns = [f"F{i + 1}" for i in range(self.loadings.shape[1])]
        frame = _optional.pandas().DataFrame(self.loadings, index=self.names, columns=columns)
        return frame.assign(uniqueness=self.uniqueness)


def components(moments: Moments, places: tuple[int, ...]) -> Components:
    """Of the correlation matrix of some columns."""
    eigenvalues = moments.delta(places, _eigenvalues)
    values, vectors = np.linalg.eigh(_correlation(moments.covariance(places)))
    scale = 1 / np.sqrt(np.maximum(np.diag(moments.covariance(places)), _LEAST))
    noise = moments.norm(np.eye(len(moments.names))[list(places)] * scale[:, None])
    privacy = np.sqrt(np.maximum(np.diag(eigenvalues.privacy), 0.0))
    names = tuple(moments.names[p] for p in places)
    signs = np.sign(vectors[np.argmax(np.abs(vectors), axis=0), np.arange(len(values))])
    return Components(
        names, values[::-1], (vectors * signs)[:, ::-1], eigenvalues.bse, privacy, noise
    )


def factors(moments: Moments, places: tuple[int, ...], number: int) -> Factors:
    """Principal-axis factors, rotated by varimax. Source: Harman (1976); Kaiser (1958)."""
    if not 1 <= number < len(places):
        raise ValueError("ask for at least one factor and fewer than there are columns")
    R = _correlation(moments.covariance(places))
    communality = 1 - 1 / np.diag(np.linalg.inv(_positive(R)))
    loadings = np.zeros((len(R), number))
    for _ in range(_ROUNDS):
        checkpoint()
        reduced = R - np.eye(len(R)) + np.diag(communality)
        values, vectors = np.linalg.eigh(reduced)
        loadings = vectors[:, -number:] * np.sqrt(np.maximum(values[-number:], 0.0))
        found = np.minimum(np.sum(loadings**2, axis=1), 1 - _LEAST)
        done = np.max(np.abs(found - communality)) < _SETTLED
        communality = found
        if done:
            break
    rotated = _varimax(loadings[:, ::-1])
    return Factors(tuple(moments.names[p] for p in places), rotated, 1 - communality)


def _varimax(loadings: FloatArray) -> FloatArray:
    m = loadings.shape[1]
    turn, before = np.eye(m), 0.0
    for _ in range(_ROUNDS if m > 1 else 0):
        turned = loadings @ turn
        left, values, right = np.linalg.svd(
            loadings.T @ (turned**3 - turned * np.mean(turned**2, axis=0))
        )
        turn = left @ right
        if values.sum() < before * (1 + _SETTLED):
            break
        before = float(values.sum())
    found = loadings @ turn
    signs = np.sign(np.sum(found, axis=0))
    return np.asarray(found * np.where(signs == 0, 1.0, signs))


def _correlation(K: FloatArray) -> FloatArray:
    scale = 1 / np.sqrt(np.maximum(np.diag(K), _LEAST))
    R = K * np.outer(scale, scale)
    return np.asarray((R + R.T) / 2)


def _eigenvalues(K: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.eigvalsh(_correlation(K))[::-1])


def _positive(R: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(R)
    return np.asarray((vectors * np.maximum(values, _LEAST)) @ vectors.T)
