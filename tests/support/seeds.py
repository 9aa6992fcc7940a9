# SPDX-License-Identifier: Apache-2.0
"""Every seed of a run of the tests, shifted alike: --noise-seed N makes all noise and all tables
others.
"""

import os
from collections.abc import Sequence
from random import Random

import numpy as np

VARIABLE = "NOISE_SEED"
"""Of the environment, so that processes that a test starts draw alike."""


def shift() -> int:
    """By how much the seeds of this run are shifted; 0, where nobody said."""
    return int(os.environ.get(VARIABLE) or 0)


def seeded(seed: int | Sequence[int]) -> np.random.Generator:
    """The generator of a seed of this run. Where a table has to be one that other software was
    given, its test names numpy's generator, and says so.
    """
    return np.random.default_rng(seed if not shift() else _key(seed))


def seeded_random(seed: int) -> Random:
    """Python's own generator of a seed of this run."""
    return Random(seed if not shift() else str(_key(seed)))


def _key(seed: int | Sequence[int]) -> list[int]:
    return [shift(), *([seed] if isinstance(seed, int | np.integer) else seed)]
