# SPDX-License-Identifier: Apache-2.0
"""A released fit, evaluated on records: fitted values, their bins, and residuals as parts of a Gram
sum.

The coefficients are released numbers, so a record's fitted value μ(βᵀx) is a function of this
record and of public values. A record in use whose fitted value lies in bin b of B public bins
contributes vvᵀ of v = e_b ⊗ (a, z), z = (y − μ − c_b)/h_b clipped to [−1, 1], c_b and h_b the
public centre and half-width of the bin's range (binned_residuals.links): ‖v‖² ≤ a² + 1, and
Δ = √2(a² + 1) for all bins together, as of groups (kinds.shared.groups: a record that moves to
another bin is one that moves to another group). Others contribute nothing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.design import Design, Term
from reticent_server.domain.grid import Grid
from reticent_server.domain.steps import Block, Contribution, FloatArray
from reticent_server.kinds.binned_residuals.links import MEANS
from reticent_server.kinds.shared.groups import weighted_values
from reticent_server.kinds.shared.predictor import Predictor
from reticent_server.numerics.evaluate import evaluate_term, in_use
from reticent_server.numerics.grids import cell_codes


@dataclass(frozen=True, slots=True)
class FittedModel:
    """A design with its coefficients (p,), the intercept first where there is one. link: a name of
    MEANS."""

    design: Design
    coefficients: tuple[float, ...]
    link: str

    def predictor(self, block: Block) -> FloatArray:
        """(rows,) η; NaN where the record is out of use."""
        eta = Predictor(self.design, self.coefficients).values(block)
        return np.where(in_use(self.design, block), eta, np.nan)

    @property
    def limits(self) -> tuple[float, float]:
        """The limits of η, by the terms' declared bounds and the link."""
        low, high = Predictor(self.design, self.coefficients).limits
        return MEANS[self.link].reach(low, high, self.response)

    @property
    def response(self) -> Term:
        """The term on the left of the formula. Raises RuntimeError where there is none."""
        if self.design.response is None:
            raise RuntimeError("a fit has a response")
        return self.design.response


@dataclass(frozen=True, slots=True)
class PredictorMap:
    """(rows,) the cell of η on a public grid."""

    model: FittedModel
    grid: Grid

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        return (cell_codes(self.model.predictor(block), self.grid),)


@dataclass(frozen=True, slots=True)
class BinnedResidualMap:
    """(2B, rows) e_b ⊗ (a, z). edges: (B + 1,) of fitted values; centres, halves: c and h (B,)."""

    model: FittedModel
    edges: tuple[float, ...]
    centres: tuple[float, ...]
    halves: tuple[float, ...]
    a: float

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        B = len(self.halves)
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            mu = MEANS[self.model.link].mean(self.model.predictor(block))
            r = evaluate_term(self.model.response, block) - mu
            bins = self._bins(mu)
            inside = (bins >= 0) & (bins < B) & np.isfinite(r)
            near = np.clip(bins, 0, B - 1)
            z = (r - np.array(self.centres)[near]) / np.array(self.halves)[near]
            z = np.clip(z, -1.0, 1.0)
        return (weighted_values(self.a, z, np.where(inside, bins, -1), B),)

    def _bins(self, mu: FloatArray) -> NDArray[np.int64]:
        """(rows,) 0..B−1; a bin holds its lower edge, the last one its upper edge too; others lie
        outside."""
        edges = np.asarray(self.edges)
        found = np.searchsorted(edges, mu, side="right") - 1
        return np.where(mu == edges[-1], len(edges) - 2, found)
