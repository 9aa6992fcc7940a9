# SPDX-License-Identifier: Apache-2.0
"""A noisy table of cells: its margins, shares and draws, with the noise and sampling counted.

Counts c of K cells are h + z: h the records' own, z noise of variance σ². Where Σh is public they
were projected on it, and z has the covariance σ²(I − 11ᵀ/K). A margin that adds up r cells is such
a table of K/r cells with variance rσ². Counts stay as they are, negative ones too: cutting them at
0 moves sparse tables upwards, and with them whatever is estimated.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from reticent._vector import FloatArray

CLEAR = 4.0  # what is divided by, over its noise: with 4, logits on Adult were covered .93 to .97


@dataclass(frozen=True, slots=True, eq=False)
class CellTable:
    """counts: an axis for each of the columns. sigma: of the noise in a cell, before a public sum
    was put in.
    """

    columns: tuple[str, ...]
    counts: FloatArray
    sigma: float
    total: float | None

    @property
    def number(self) -> float:
        """Of records: public, or the noisy sum (at least 1)."""
        return self.total if self.total is not None else max(float(self.counts.sum()), 1.0)

    @property
    def is_clear(self) -> bool:
        """Whether the number of records is public, or far above its noise: shares divide by it."""
        return self.total is not None or self.number > CLEAR * self.sigma * self.counts.size**0.5

    def noise(self, A: FloatArray) -> FloatArray:
        """(k, k) covariance of the noise in A·c, of A (k, cells)."""
        square = A @ A.T
        if self.total is not None:
            sums = A.sum(axis=1)
            square = square - np.outer(sums, sums) / self.counts.size
        return np.asarray(self.sigma**2 * square)

    def margin(self, columns: Sequence[str]) -> "CellTable":
        """Of some of the columns, in their order."""
        others = tuple(k for k, name in enumerate(self.columns) if name not in columns)
        kept = [name for name in self.columns if name in columns]
        added = prod(self.counts.shape[k] for k in others)
        counts = self.counts.sum(axis=others)
        counts = counts.transpose([kept.index(name) for name in columns])
        return CellTable(tuple(columns), counts, self.sigma * added**0.5, self.total)

    def shares(self) -> tuple[FloatArray, FloatArray]:
        """Shares of the cells, unbiased, and their standard errors, sampling and noise (Agresti and
        Coull's variance, which is not 0 in an empty cell).
        """
        N, c = self.number, self.counts.ravel()
        p = c / N
        A = np.eye(c.size) - (0.0 if self.total is not None else p[:, None])
        kept = np.clip((c + 2) / (N + 4), 0.0, 1.0)
        variance = kept * (1 - kept) / N + np.diag(self.noise(A)) / N**2
        return p.reshape(self.counts.shape), np.sqrt(variance).reshape(self.counts.shape)

    def positive(self) -> FloatArray:
        """The nearest counts (cells,) that are 0 or more and have the table's number (Duchi et al.
        2008).
        """
        c = self.counts.ravel()
        down = np.sort(c)[::-1]
        excess = (np.cumsum(down) - self.number) / np.arange(1, c.size + 1)
        return np.asarray(np.maximum(c - excess[np.flatnonzero(down > excess)[-1]], 0.0))

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """(cells,) counts with sampling and noise once more: their spread over many draws is that
        of the released ones about what is expected of them.
        """
        likely = self.positive()
        sampling = np.sqrt(likely) * rng.standard_normal(likely.size)
        sampling -= likely / likely.sum() * sampling.sum()
        noise = self.sigma * rng.standard_normal(likely.size)
        if self.total is not None:
            noise -= noise.mean()
        return np.asarray(self.counts.ravel() + sampling + noise)
