# SPDX-License-Identifier: Apache-2.0
"""A synthetic table from public facts: released quantiles and counts column by column, joined by a
Gaussian copula.

A column is F⁻¹(Φ(z)) of a standard normal z: F by its released quantiles (linear between them, one
step beyond the outermost ones, within the declared bounds) or counts, else even between the bounds.
Where a study was released its correlations r are those of z, corrected for columns of 0 and 1 by
φ(Φ⁻¹(p))/√(p(1 − p)), as in reticent._study.twin.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from reticent._schema import Column

FloatArray = NDArray[np.float64]
_LEAST = 1e-6
"""Least share of a value and least eigenvalue of the correlations."""
_MOST = 0.99
"""Largest corrected correlation."""
_INCREASING = re.compile(r"^(?:log|log1p|sqrt)\((\w+)\)$")
"""Texts of a study whose order is that of their column: both have the same copula."""


@dataclass(frozen=True, slots=True)
class Marginal:
    """A column with what was released about it. figures: as JSON; probabilities: of its
    quantiles.
    """

    column: Column
    figures: Mapping[str, Any]
    probabilities: tuple[float, ...]

    @property
    def lower(self) -> float:
        """The least value that is drawn: the declared bound, or 0 for the code of a level."""
        return 0.0 if self.column.lower is None else self.column.lower

    @property
    def upper(self) -> float:
        """The largest value that is drawn: the declared bound, or the code of the last level."""
        if self.column.upper is not None:
            return self.column.upper
        return max(len(self.column.levels) - 1.0, 0.0) if self.column.levels else 1.0

    @property
    def shares(self) -> FloatArray | None:
        """Of the values from `first` on; None where no counts were released, or none above 0."""
        counts = self.figures.get("counts")
        if counts is None or not np.maximum(counts, 0.0).sum() > 0:
            return None
        positive = np.maximum(np.asarray(counts, np.float64), 0.0)
        return np.asarray(positive / positive.sum())

    @property
    def kept(self) -> float:
        """What is left of a correlation of z in the column: below 1 where it has two values."""
        shares = self.shares
        if shares is None or len(shares) != 2:
            return 1.0
        p = float(np.clip(shares[1], _LEAST, 1 - _LEAST))
        return float(np.exp(-(ndtri(p) ** 2) / 2) / np.sqrt(2 * np.pi * p * (1 - p)))

    def values(self, u: FloatArray) -> FloatArray:
        """Stored values at u, even on (0, 1), of its shape: numbers, codes of levels, 0 and 1."""
        quantiles, shares = self.figures.get("quantiles"), self.shares
        if quantiles:
            found: Any = self._between(u, np.maximum.accumulate(np.asarray(quantiles, np.float64)))
        elif shares is not None:
            first = float(self.figures.get("first", 0))
            found = first + np.searchsorted(np.cumsum(shares)[:-1], u, side="right")
        elif self.column.kind == "numeric":
            found = self.lower + u * (self.upper - self.lower)
        else:
            found = self.lower + np.floor(u * (self.upper - self.lower + 1))
        if self.column.kind != "numeric":
            found = np.round(found)
        return np.asarray(np.clip(found, self.lower, self.upper))

    def _between(self, u: FloatArray, q: FloatArray) -> FloatArray:
        p = np.asarray(self.probabilities[: len(q)])
        steps = np.diff(q[[0, 1, -2, -1]])[[0, 2]] if len(q) > 1 else np.zeros(2)
        places = np.concatenate([[0.0], p, [1.0]])
        values = np.concatenate([[q[0] - steps[0]], q, [q[-1] + steps[1]]])
        return np.asarray(np.interp(u, places, values), np.float64)


def column_of(text: str) -> str:
    """The column that a study's text is a monotone function of; the text itself for every other."""
    found = _INCREASING.match(text)
    return found[1] if found else text


def correlations(marginals: Sequence[Marginal], names: Sequence[str], r: FloatArray) -> FloatArray:
    """(k, k) of the columns' normal scores: a study's r (m, m) of its texts, and 0 of what it has
    not.
    """
    place = {marginal.column.name: k for k, marginal in enumerate(marginals)}
    known = [
        (place[column_of(name)], i) for i, name in enumerate(names) if column_of(name) in place
    ]
    found = np.eye(len(marginals))
    for a, i in known:
        for b, j in known:
            if a != b and np.isfinite(r[i, j]):
                kept = marginals[a].kept * marginals[b].kept
                found[a, b] = float(np.clip(r[i, j] / kept, -_MOST, _MOST))
    return found


def draw(
    marginals: Sequence[Marginal], latent: FloatArray, rows: int, seed: int
) -> dict[str, FloatArray]:
    """(rows,) stored values by column; latent: (k, k) correlations of normal scores, made positive
    definite.
    """
    values, vectors = np.linalg.eigh(latent)
    root = vectors * np.sqrt(np.maximum(values, _LEAST))
    root /= np.sqrt(np.sum(root**2, axis=1, keepdims=True))
    z = np.random.default_rng(seed).standard_normal((rows, len(marginals))) @ root.T
    return {m.column.name: m.values(ndtr(z[:, k])) for k, m in enumerate(marginals)}
