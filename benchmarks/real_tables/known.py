# SPDX-License-Identifier: Apache-2.0
"""What part takes the loss: a fit that is told the solution where it has to find it.

`lengths`: scores are counted as long as they are at the solution, so that cut, tail and excess are
right, and all else is as it is. `start`: the first whole step begins there, too.
"""

from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.report import back_transform
from reticent_server.fitting.whole_newton import WholeNewton

KNOWN = ("nothing", "lengths", "start")


def _there(fit: WholeNewton, place: Any, solution: FloatArray) -> Any:
    back = back_transform(fit.coding)
    theta = np.linalg.solve(back.matrix, solution - back.offset)
    return replace(place, state=replace(place.state, theta=theta))


@contextmanager
def told(known: str, solution: FloatArray) -> Iterator[None]:
    """Within it every fit is told so much of the solution (q,), in the units of the data."""
    cuts, first = (vars(WholeNewton)[k] for k in ("_cuts", "_first"))

    def right_cuts(fit: WholeNewton, place: Any, score: Any) -> Generator[Any, Any, Any]:
        return (yield from cuts(fit, _there(fit, place, solution), score))

    def right_start(fit: WholeNewton, place: Any, score: Any, cut: Any) -> Generator[Any, Any, Any]:
        return (yield from first(fit, _there(fit, place, solution), score, cut))

    with ExitStack() as stack:
        if known in {"lengths", "start"}:
            stack.enter_context(mock.patch.object(WholeNewton, "_cuts", right_cuts))
        if known == "start":
            stack.enter_context(mock.patch.object(WholeNewton, "_first", right_start))
        yield
