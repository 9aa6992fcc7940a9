# SPDX-License-Identifier: Apache-2.0
"""Groups whose released number of records is not above its noise, so that they may have none.

Such a group is in no statistic: degrees of freedom count the groups that are, and a reply names the
others. Which they are is a function of released numbers, so it costs nothing; and the statistic of
the others is a function of the same release (post-processing). Where fewer than two are left, all
groups are compared: the noise is in the null law, so that a test of groups that may be empty
refuses little.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reticent_server.kinds.shared.groups import LEAST_COMPARED

NO_CURVE = "It has no curve and is in no test; means of the others go as far as theirs."
SAYS_NOTHING = "The test then says nothing."
_NAMED = 5  # levels in a sentence; the table beside it has all numbers


def in_statistic(known: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(G,) which groups are compared. known (G,): whose numbers are above their noise."""
    return known if int(known.sum()) >= LEAST_COMPARED else np.ones_like(known)


def sparse_warnings(
    levels: Sequence[str], known: NDArray[np.bool_], instead: str = "It is in no statistic."
) -> tuple[str, ...] | None:
    """A sentence about the levels (G,) that are not `known`; None without any. instead: what
    follows for each of them."""
    sparse = [level for level, clear in zip(levels, known.tolist(), strict=True) if not clear]
    if not sparse:
        return None
    said = "the released number of records is not above its noise, so there may be none."
    return (f"{_named(sparse)}: {said} {instead}",)


def empty_warnings(empty: Sequence[str]) -> tuple[str, ...] | None:
    """A sentence about the levels of which the first selection said that they are empty
    (mechanisms.quantile_tree); None without any."""
    if not empty:
        return None
    return (f"{_named(empty)}: no records, or hardly any, so no value is reported.",)


def _named(levels: Sequence[str]) -> str:
    more = f" and {len(levels) - _NAMED} others" if len(levels) > _NAMED else ""
    return ", ".join(levels[:_NAMED]) + more
