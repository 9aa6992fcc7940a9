# SPDX-License-Identifier: Apache-2.0
"""What plots share; matplotlib is asked for when one is drawn."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reticent import _optional

TOTAL, SAMPLING = "#9db4c0", "#1f4e79"
"""Colours: of an interval that counts all noise, and of sampling alone."""
_LINE = 64
"""Characters that a figure of the usual width has room for."""


def axes_of(ax: Any) -> Any:
    """These axes, or new ones."""
    return ax if ax is not None else _optional.pyplot().subplots(layout="constrained")[1]


def intervals(labels: Sequence[str], values: Any, ends: Any, ax: Any) -> Any:
    """One row each: a point and its interval; nothing where the interval is not finite."""
    axes = axes_of(ax)
    for row, (value, (low, high)) in enumerate(zip(values, ends, strict=True)):
        if np.isfinite([value, low, high]).all():
            axes.plot([low, high], [row, row], color=TOTAL, linewidth=4, solid_capstyle="butt")
            axes.plot([value], [row], "o", color=SAMPLING)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    return axes


def subject(query: Mapping[str, Any]) -> str:
    """What a query is about, in lines that a figure is wide enough for."""
    column, where = query.get("column") or "records", query.get("where")
    text = f"{column} where {where}" if where else str(column)
    return textwrap.fill(text, _LINE)
