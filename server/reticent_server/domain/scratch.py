# SPDX-License-Identifier: Apache-2.0
"""Arrays that a thread uses again for every block: a pass then allocates nothing that grows with
n."""

from math import prod

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_LINE = 8  # float64 in 64 bytes, a cache line
# float64 in 2 KiB (ReusedScratch.array says why); speed only
_ALIASED = 256


class Scratch:
    """A new array at every call: for blocks that are looked at outside a pass."""

    def array(self, _name: str, *shape: int) -> FloatArray:
        """An array of shape (rows,) or (size, rows), with arbitrary contents."""
        return np.empty(shape)


class ReusedScratch(Scratch):
    """The same memory for the same name: for one thread, valid until its next block."""

    def __init__(self) -> None:
        self._kept: dict[str, FloatArray] = {}

    def array(self, name: str, *shape: int) -> FloatArray:
        """A view of the memory kept under that name, which grows when it is too small.

        The rows of a matrix are padded where they would lie a multiple of 2 KiB apart: its columns
        then fall into the same few lines of the processor's cache, and products take twice as long.
        """
        rows = shape[-1]
        stride = rows + _LINE if len(shape) > 1 and rows % _ALIASED == 0 else rows
        size = prod(shape[:-1]) * stride
        kept = self._kept.get(name)
        if kept is None or kept.size < size:
            kept = self._kept[name] = np.empty(size)
        return kept[:size].reshape(*shape[:-1], stride)[..., :rows]


FRESH = Scratch()
