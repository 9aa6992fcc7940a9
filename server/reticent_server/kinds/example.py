# SPDX-License-Identifier: Apache-2.0
"""The table that the kinds' examples are about: its schema, and rows that are made up.

The suite of tests loads one like it; a server that starts measures its pace on one.
"""

import numpy as np
from scipy.special import ndtri

from reticent_server.domain.column_kind import ColumnKind
from reticent_server.domain.schema import Column, Schema
from reticent_server.domain.steps import FloatArray

_STEPS = (5**0.5 - 1) / 2, 2**0.5 - 1
"""Irrational, so that multiples are spread evenly over (0, 1) beyond whole numbers, and
independently."""

SCHEMA = Schema(
    (
        Column("y", ColumnKind.NUMERIC, -10, 10),
        Column("x", ColumnKind.NUMERIC, -5, 5),
        Column("k", ColumnKind.INTEGER, 0, 9),
        Column("g", ColumnKind.CATEGORICAL, 0, 2, ("a", "b", "c")),
        Column("b", ColumnKind.BOOLEAN, 0, 1),
        Column("m", ColumnKind.NUMERIC, 0, 1),
    )
)


def rows(n: int) -> dict[str, FloatArray]:
    """Column → (n,) values as they are stored; the same every time."""
    position = np.arange(n)
    x, e = (ndtri((position + 0.5) * step % 1) for step in _STEPS)
    return {
        "y": np.clip(1 + 2 * x + e, -10, 10),
        "x": np.clip(x, -5, 5),
        "k": (position % 10).astype(float),
        "g": (position % 3).astype(float),
        "b": (position % 2).astype(float),
        "m": np.full(n, 0.5),
    }
