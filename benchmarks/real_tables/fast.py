# SPDX-License-Identifier: Apache-2.0
"""Discrete Gaussian noise drawn by numpy: the same law but for rounding, seeded, and hundreds of
times as fast.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import numpy as np

from reticent_server.mechanisms._sampler import DiscreteGaussian


@contextmanager
def numpy_noise(rng: np.random.Generator, *, on: bool) -> Iterator[None]:
    """Within it, where `on`, all Gaussian noise of this process is `rng`'s."""

    def add(self: DiscreteGaussian, values: np.ndarray) -> np.ndarray:
        noise = np.rint(rng.normal(scale=self.scale, size=values.shape))
        return np.asarray(values + noise.astype(np.int64), dtype=np.int64)

    if not on:
        yield
        return
    with mock.patch.object(DiscreteGaussian, "add", add):
        yield
