# SPDX-License-Identifier: Apache-2.0
"""A linear hypothesis about the coefficients of a model."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LinearHypothesis:
    """Rβ = r: texts (k), rows R (k of q numbers, of rank k), values r (k), in the reported
    order."""

    texts: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]
    values: tuple[float, ...]

    @property
    def df(self) -> int:
        """Degrees of freedom of a test: the number of rows."""
        return len(self.rows)
