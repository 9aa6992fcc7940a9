# SPDX-License-Identifier: Apache-2.0
"""A one-dimensional array whose entries also have names."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class Vector(np.ndarray[tuple[int], np.dtype[np.float64]]):
    """(p,) float64 values with p names: `v["x1"]`, `v.names`, `v.items()`; else an ndarray.

    Names belong to the whole vector: arithmetic and slices give plain values without names.
    """

    names: tuple[str, ...]

    def __new__(cls, values: Sequence[float | None] | FloatArray, names: Sequence[str]) -> "Vector":
        """Null entries become NaN. Raises ValueError where the lengths differ."""
        vector = np.array(values, dtype=np.float64).view(cls)
        if vector.shape != (len(names),):
            raise ValueError("a vector needs one name for each value")
        vector.names = tuple(names)
        vector.flags.writeable = False
        return vector

    def __array_finalize__(self, source: Any) -> None:
        self.names = ()

    def __getitem__(self, key: Any) -> Any:
        """An entry by its name; else as for an ndarray. Raises KeyError for an unknown name."""
        if not isinstance(key, str):
            return super().__getitem__(key)
        if key not in self.names:
            raise KeyError(f"{key}: the names are {', '.join(self.names)}")
        return float(super().__getitem__(self.names.index(key)))

    def items(self) -> Iterator[tuple[str, float]]:
        """Pairs of name and value."""
        return zip(self.names, self.tolist(), strict=True)

    def to_dict(self) -> dict[str, float]:
        """The values by name, as a new dictionary."""
        return dict(self.items())

    def __repr__(self) -> str:
        if not self.names:
            return repr(np.asarray(self))
        width = max(map(len, self.names))
        return "\n".join(f"{name:<{width}}  {value: .6g}" for name, value in self.items())
