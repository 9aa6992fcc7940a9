# SPDX-License-Identifier: Apache-2.0
"""The place of a stored level among some."""

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import FloatArray


def level_places(codes: tuple[float, ...], values: FloatArray) -> NDArray[np.int64]:
    """(rows,) which of the codes, all different, a value is; −1 for none of them, and for what is
    no number."""
    known = np.asarray(codes, dtype=np.float64)
    if np.all(np.diff(known) == 1):  # levels one after another: no search
        return _counted_off(known, values)
    order = np.argsort(known)
    increasing = known[order]
    near = np.minimum(np.searchsorted(increasing, values), len(codes) - 1)
    return np.where(values == increasing[near], order[near], -1)


def _counted_off(codes: FloatArray, values: FloatArray) -> NDArray[np.int64]:
    """(rows,) the same of codes c, c + 1, …: the whole part of what a value is more than c, where
    that and c are the value again. Whatever the cast makes of what is not finite is none of them.
    """
    with np.errstate(all="ignore"):
        place: NDArray[np.int64] = (values - codes[0]).astype(np.int64)
        own = place + codes[0] == values
    own &= place >= 0
    own &= place < len(codes)
    place[~own] = -1
    return place
