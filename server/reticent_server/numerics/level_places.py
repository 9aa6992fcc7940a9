# SPDX-License-Identifier: Apache-2.0
"""The place of a stored level among some."""

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import FloatArray


def level_places(codes: tuple[float, ...], values: FloatArray) -> NDArray[np.int64]:
    """(rows,) which of the codes, all different, a value is; −1 for none of them, and for what is
    no number."""
    order = np.argsort(np.asarray(codes))
    increasing = np.asarray(codes)[order]
    near = _nearest(increasing, values)
    return np.where(values == increasing[near], order[near], -1)


def _nearest(codes: FloatArray, values: FloatArray) -> NDArray[np.int64]:
    """(rows,) the place of the only one of increasing codes that a value may be."""
    if np.all(np.diff(codes) == 1):  # levels one after another: no search
        with np.errstate(all="ignore"):
            off = np.nan_to_num(values - codes[0], nan=0.0)
            return np.asarray(np.clip(off, 0, len(codes) - 1), dtype=np.int64)
    return np.asarray(np.minimum(np.searchsorted(codes, values), len(codes) - 1))
