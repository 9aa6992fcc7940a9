# SPDX-License-Identifier: Apache-2.0
"""A column's shape in a few characters, from its released quantiles."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

BARS = "▁▂▃▄▅▆▇█"


def sparkline(quantiles: Sequence[float], cells: int = 12) -> str:
    """Density in `cells` equal cells between the outer quantiles: as uniform between neighbours.

    quantiles: increasing, at equally spaced probabilities. Equal ones are a point mass, in the cell
    that holds them; "" where all are equal or fewer than three.
    """
    q = np.asarray(quantiles, dtype=float)
    if len(q) < 3 or not q[-1] > q[0]:
        return ""
    edges = np.linspace(q[0], q[-1], cells + 1)
    mass = np.zeros(cells)
    for low, high in pairwise(q):
        if high > low:
            inside = np.clip((edges - low) / (high - low), 0.0, 1.0)
            mass += np.diff(inside)
        else:
            mass[min(int(np.searchsorted(edges, low, side="right")) - 1, cells - 1)] += 1.0
    heights = np.rint(mass / mass.max() * (len(BARS) - 1)).astype(int)
    return "".join(BARS[h] for h in heights)
