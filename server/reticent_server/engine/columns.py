# SPDX-License-Identifier: Apache-2.0
"""Whole columns for statistics that no sum gives: the blocks' arrays joined, in stored order."""

from collections.abc import Iterator

import numpy as np

from reticent_server.domain.private import Private
from reticent_server.domain.steps import Block, ColumnStep, FloatArray


def gather(step: ColumnStep, n: int, blocks: Iterator[Block]) -> tuple[Private[FloatArray], ...]:
    """One array (k, n) for each part of the step. blocks: every record once."""
    joined: list[FloatArray] = []
    for block in blocks:
        values = step.map_fn(block)
        if not joined:
            joined = [np.zeros((len(v), n)) for v in values]
        for whole, v in zip(joined, values, strict=True):
            whole[:, block.start : block.start + block.rows] = v
    return tuple(Private(whole) for whole in joined)
