# SPDX-License-Identifier: Apache-2.0
"""Numbers at risk below the axis of time of a plot."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# numbers at risk in a line: more do not stand side by side in a figure of usual width
_MOST_NUMBERS = 6
_BESIDE = -24  # points, of a label from the first number's middle: half of a number up to 99,999


@dataclass(frozen=True, slots=True, eq=False)
class RiskLine:
    """A group's numbers at risk (k,) from each of the times before to `times` (k,)."""

    label: str
    times: NDArray[np.float64]
    at_risk: NDArray[np.float64]


def numbers_under(axes: Any, curves: Sequence[RiskLine]) -> None:
    """A line of numbers at risk for each curve, below the axis of time."""
    longest = max((curve.times for curve in curves), key=len)
    starts = _apart(np.append(0.0, longest))
    below = axes.get_xaxis_transform()
    axes.text(0.0, -0.2, "number at risk", transform=below, fontsize="small", va="center")
    for line, curve in enumerate(curves):
        y = -0.27 - 0.07 * line
        axes.annotate(
            curve.label, (0.0, y), (_BESIDE, 0), xycoords=below, textcoords="offset points",
            fontsize="small", ha="right", va="center", annotation_clip=False,
        )  # fmt: skip
        for start in starts:
            j = int(np.searchsorted(curve.times, start, side="right"))
            if j < len(curve.at_risk):
                number_of = f"{max(curve.at_risk[j], 0.0):,.0f}"
                axes.text(
                    start, y, number_of, transform=below, fontsize="small", ha="center", va="center"
                )


def _apart(times: NDArray[np.float64]) -> list[float]:
    """The starts of intervals, of which none is closer to the one before than a number is wide."""
    least, chosen = times[-1] / _MOST_NUMBERS, [0.0]
    for start in times[1:-1].tolist():
        if start - chosen[-1] >= least:
            chosen.append(start)
    return chosen
