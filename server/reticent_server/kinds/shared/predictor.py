# SPDX-License-Identifier: Apache-2.0
"""The linear predictor of a released model, evaluated on records.

Coefficients are released numbers, so that η = βᵀx of a record is a function of this record and of
public values.
"""

from dataclasses import dataclass

import numpy as np

from reticent_server.domain.design import Design
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.numerics.evaluate import evaluate_term

PREDICTOR_NANOSECONDS = 100  # of a record and term; measured 30


@dataclass(frozen=True, slots=True)
class Predictor:
    """Terms with coefficients (p,), the intercept first where the design has one."""

    design: Design
    coefficients: tuple[float, ...]

    def values(self, block: Block) -> FloatArray:
        """(rows,) η; not finite where a cell is not."""
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            eta = np.full(block.rows, self._start)
            for beta, term in zip(self._slopes, self.design.terms, strict=True):
                eta = eta + beta * evaluate_term(term, block)
        return eta

    @property
    def limits(self) -> tuple[float, float]:
        """The range of η, by the declared bounds of the terms."""
        low = high = self._start
        for beta, term in zip(self._slopes, self.design.terms, strict=True):
            ends = (beta * term.lower, beta * term.upper) if beta else (0.0, 0.0)
            low, high = low + min(ends), high + max(ends)
        return low, high

    @property
    def _slopes(self) -> tuple[float, ...]:
        return self.coefficients[self.design.intercept :]

    @property
    def _start(self) -> float:
        return self.coefficients[0] if self.design.intercept else 0.0
