# SPDX-License-Identifier: Apache-2.0
"""Noise from a seed, for tests of statistics: the same numbers in every run, on every machine.

Whole numbers and words come from seeded bits by the same exact algorithms; Gaussian and Laplace
noise, which is drawn in a library, is replaced. Tests of that library's draws are marked
real_noise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from reticent_server.mechanisms import _sampler
from support.seeds import seeded

if TYPE_CHECKING:
    import pytest


def seed_noise(patch: pytest.MonkeyPatch, name: str) -> None:
    """Replaces every source of noise by one generator, seeded with a test's name."""
    rng = seeded(crc32(name.encode()))

    def gaussian(self: Any, values: Any) -> Any:
        return values + np.rint(self.scale * rng.normal(size=len(values))).astype(np.int64)

    def laplace(self: Any, values: Any) -> Any:
        stop = -np.expm1(-1 / self.scale)
        first, second = rng.geometric(stop, size=(2, len(values)))
        return values + (first - second).astype(np.int64)

    def words(count: int) -> Any:
        return rng.integers(0, 2**64, size=count, dtype=np.uint64)

    def below(limit: int) -> int:
        return int.from_bytes(rng.bytes(limit.bit_length() // 8 + 9), "big") % limit

    patch.setattr(_sampler.DiscreteGaussian, "add", gaussian)
    patch.setattr(_sampler.Laplace, "add", laplace)
    patch.setattr(_sampler, "words", words)
    patch.setattr(_sampler, "below", below)


def is_seeded() -> bool:
    """Whether noise comes from a seed now."""
    return _sampler.DiscreteGaussian.add.__module__ == __name__
