# SPDX-License-Identifier: Apache-2.0
"""Values of derived columns: each row's from the same row's values alone."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.derived import Derived
from reticent_server.numerics.evaluate import apply_function

FloatArray = NDArray[np.float64]
OPERATORS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}


def derived_values(derived: Derived, columns: Mapping[str, FloatArray]) -> FloatArray:
    """(rows,) of columns (rows,); not finite where the computation is not defined (no warning)."""
    rows = len(next(iter(columns.values())))
    stack: list[FloatArray] = []
    with np.errstate(all="ignore"):
        for step in derived.steps:
            if step.action == "column":
                stack.append(columns[step.name])
            elif step.action == "number":
                stack.append(np.full(rows, step.parameter))
            elif step.action == "function":
                stack.append(apply_function(step.name, stack.pop(), step.parameter))
            else:
                right = stack.pop()
                stack.append(np.asarray(OPERATORS[step.name](stack.pop(), right)))
    (values,) = stack
    return values
