# SPDX-License-Identifier: Apache-2.0
"""A whole table in memory, and samples of it."""

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from benchmarks.accuracy import BenchTable
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.domain.steps import FloatArray

# of the profile that each sample releases: what a careful curator would spend
PROFILE_EPSILON = 0.5


@dataclass(slots=True)
class Frame:
    """Columns with their declared bounds. A not-a-number is a missing cell."""

    arrays: dict[str, FloatArray] = field(default_factory=dict)
    columns: dict[str, Column] = field(default_factory=dict)

    @property
    def n(self) -> int:
        return len(next(iter(self.arrays.values())))

    def put(
        self,
        name: str,
        values: object,
        lower: float,
        upper: float,
        kind: ColumnKind = ColumnKind.NUMERIC,
        missing: tuple[str, ...] = (),
    ) -> Self:
        """Adds a column; missing: its texts for a missing cell, where it may have some."""
        self.arrays[name] = np.asarray(values, dtype=float)
        self.columns[name] = Column(name, kind, float(lower), float(upper), missing=missing)
        return self

    def numerics(self, source: dict[str, FloatArray], **bounds: tuple[float, float]) -> Self:
        for name, (lower, upper) in bounds.items():
            self.put(name, source[name], lower, upper)
        return self

    def integers(self, source: dict[str, FloatArray], **bounds: tuple[float, float]) -> Self:
        for name, (lower, upper) in bounds.items():
            self.put(name, source[name], lower, upper, ColumnKind.INTEGER)
        return self

    def booleans(self, **values: object) -> Self:
        for name, each in values.items():
            self.put(name, each, 0, 1, ColumnKind.BOOLEAN)
        return self

    def factor(self, name: str, texts: object, levels: tuple[str, ...] | None = None) -> Self:
        """Adds a categorical column; levels: in order, the most frequent first where they are not
        given.
        """
        cells = np.asarray(texts).astype(str)
        found, counts = np.unique(cells, return_counts=True)
        order = levels or tuple(found[np.argsort(-counts, kind="stable")].tolist())
        codes = {level: code for code, level in enumerate(order)}
        self.arrays[name] = np.array([codes[cell] for cell in cells], dtype=float)
        self.columns[name] = Column(
            name, ColumnKind.CATEGORICAL, 0.0, len(order) - 1.0, levels=order
        )
        return self

    def of(self, names: set[str]) -> "Frame":
        """The columns among `names`."""
        kept = [name for name in self.columns if name in names]
        return Frame({k: self.arrays[k] for k in kept}, {k: self.columns[k] for k in kept})

    def shuffled(self, rng: np.random.Generator, names: tuple[str, ...]) -> "Frame":
        """With the cells of some columns permuted: they then have nothing to do with any other."""
        mixed = {name: rng.permutation(self.arrays[name]) for name in names}
        return replace(self, arrays=self.arrays | mixed)

    def rows(self, index: np.ndarray) -> BenchTable:
        """The table of the records `index`, profiled."""
        arrays = {k: np.ascontiguousarray(x[index]) for k, x in self.arrays.items()}
        return BenchTable(arrays, self.columns.values()).profiled(PROFILE_EPSILON)

    def sample(self, rng: np.random.Generator, n: int) -> BenchTable:
        """n records drawn with replacement."""
        return self.rows(rng.choice(self.n, n))

    def repeated(self, least: int) -> BenchTable:
        """Every record equally often, at least `least` of them: the distribution that samples come
        from.
        """
        return self.rows(np.tile(np.arange(self.n), max(1, -(-least // self.n))))
