# SPDX-License-Identifier: Apache-2.0
"""The scale of the noise of each entry of a part, read off the draws of a release.

A mechanism that says one scale and draws another is found by what it draws. For that the sampler's
method is replaced while one release is made, by one that keeps the scale and calls the real one.
This is never done in a process that serves.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.private import Private
from reticent_server.domain.steps import FloatArray, GramSum, Part, RunningCounts
from reticent_server.mechanisms import _sampler, registry, running_counts

IntArray = NDArray[np.int64]


def drawn_scales(part: Part, sums: IntArray) -> FloatArray:
    """The σ of every noisy entry, in the shape of `sums`."""
    with _recorded() as scales:
        registry.release(part, Private(sums))
    if not isinstance(part, GramSum):
        return np.full(sums.shape, scales[0])
    found = np.full(sums.shape, np.inf)
    found[np.triu_indices(part.size, 1)] = scales[0]
    np.fill_diagonal(found, scales[1])
    return found


@contextmanager
def _recorded() -> Iterator[list[float]]:
    """The scales of the discrete Gaussians that are drawn meanwhile, in the order of the draws."""
    scales: list[float] = []
    real = _sampler.DiscreteGaussian.add

    def add(noise: _sampler.DiscreteGaussian, values: IntArray) -> IntArray:
        scales.append(noise.scale)
        return real(noise, values)

    with patch.object(_sampler.DiscreteGaussian, "add", add):
        yield scales


def entries(part: Part, sums: IntArray) -> IntArray:
    """The integers that the noise is added to, a linear function of the sums."""
    return running_counts.factored(part, sums) if isinstance(part, RunningCounts) else sums
