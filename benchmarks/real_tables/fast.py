# SPDX-License-Identifier: Apache-2.0
"""Noise and secret choices drawn by numpy: the same laws but for rounding, seeded, and hundreds of
times as fast.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

import numpy as np

from reticent_server.mechanisms import _sampler, secret_blocks, secret_rows


@contextmanager
def numpy_noise(rng: np.random.Generator, *, on: bool) -> Iterator[None]:
    """Within it, where `on`, all that is drawn in this process is `rng`'s: the same seed gives the
    same releases, but for what the order of sums rounds.
    """

    def gaussian(self: _sampler.DiscreteGaussian, values: np.ndarray) -> np.ndarray:
        noise = np.rint(rng.normal(scale=self.scale, size=values.shape))
        return np.asarray(values + noise.astype(np.int64), dtype=np.int64)

    def laplace(self: _sampler.Laplace, values: np.ndarray) -> np.ndarray:
        first, second = rng.geometric(-np.expm1(-1 / self.scale), size=(2, *values.shape))
        return np.asarray(values + (first - second), dtype=np.int64)

    def words(count: int) -> np.ndarray:
        return rng.integers(0, 2**64, size=count, dtype=np.uint64)

    def below(limit: int) -> int:
        return int.from_bytes(rng.bytes(limit.bit_length() // 8 + 9), "big") % limit

    if not on:
        yield
        return
    with ExitStack() as patches:
        for owner, name, drawn in (
            (_sampler.DiscreteGaussian, "add", gaussian),
            (_sampler.Laplace, "add", laplace),
            (_sampler, "words", words),
            (_sampler, "below", below),
            (secret_rows, "token_bytes", rng.bytes),
            (secret_blocks, "token_bytes", rng.bytes),
        ):
            patches.enter_context(mock.patch.object(owner, name, drawn))
        yield
