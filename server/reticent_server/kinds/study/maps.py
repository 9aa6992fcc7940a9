# SPDX-License-Identifier: Apache-2.0
"""What one record contributes to a study: functions of the record and of public values only.

    u = W_g z̃ in the record's group g,  ω = min(1, R_g²/‖u‖²)
    rows     e_g ⊗ u √ω/R_g        ‖·‖ ≤ 1    its Gram sum has the groups' moments as its diagonal blocks
    lengths  the bin of ‖u‖²        one count
    scores   e_g ⊗ ω Bx r/(σC)     ‖·‖ ≤ 1    cut where longer; its Gram sum is the meat of a declared formula

z̃ and W are on lattices, so a record's values are bit-identical whatever block it comes in (fitting.maps).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import Block, Contribution, FloatArray
from reticent_server.fitting.coding import TermCoding
from reticent_server.fitting.maps import coordinates, on_lattice, standardised
from reticent_server.numerics.evaluate import in_use
from reticent_server.numerics.lengths import squared_lengths
from reticent_server.numerics.mallows import mallows_weights

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RecordGroups:
    """Disjoint groups of records by the values `codes` of a column; without a column one group of all."""

    column: str | None = None
    codes: tuple[float, ...] = (0.0,)

    @property
    def count(self) -> int:
        return len(self.codes)

    def members(self, block: Block, used: BoolArray) -> list[BoolArray]:
        """(rows,) for each group."""
        if self.column is None:
            return [used]
        values = block.columns[self.column]
        return [used & (values == code) for code in self.codes]


@dataclass(frozen=True, slots=True, eq=False)
class MomentFrame:
    """Where a group's moments are taken: W (q, q) on the lattice, and R²."""

    transform: FloatArray
    radius_squared: float

    def weighted(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """u (q, rows), new, and ω (rows,)."""
        u = np.array(coordinates(self.transform, x))
        return u, mallows_weights(squared_lengths(u, np.empty(u.shape[1])), self.radius_squared)


@dataclass(frozen=True, slots=True, eq=False)
class MomentsMap:
    """Gives rows (Gq, rows); with `count` the code g of each record in use after it."""

    coding: TermCoding
    groups: RecordGroups
    frames: tuple[MomentFrame, ...]
    count: bool = False

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        members = self.groups.members(block, in_use(self.coding.design, block))
        x, q = standardised(self.coding, block), self.coding.size
        rows = np.zeros((q * self.groups.count, block.rows))
        with np.errstate(all="ignore"):
            for g, (frame, inside) in enumerate(zip(self.frames, members, strict=True)):
                u, w = frame.weighted(x)
                u *= np.sqrt(w / frame.radius_squared)
                rows[g * q : (g + 1) * q] = np.where(inside, u, 0.0)
        return (rows, _codes(members)) if self.count else (rows,)


@dataclass(frozen=True, slots=True, eq=False)
class LengthsMap:
    """Gives (rows,) codes gB + b of the bin b of ‖u‖² among B = len(edges) + 1."""

    coding: TermCoding
    groups: RecordGroups
    frames: tuple[MomentFrame, ...]
    edges: tuple[float, ...]

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        members = self.groups.members(block, in_use(self.coding.design, block))
        x, bins = standardised(self.coding, block), len(self.edges) + 1
        codes = np.full(block.rows, -1.0)
        with np.errstate(all="ignore"):
            for g, (frame, inside) in enumerate(zip(self.frames, members, strict=True)):
                u, _ = frame.weighted(x)
                lengths = squared_lengths(u, np.empty(u.shape[1]))
                bin_ = g * bins + np.searchsorted(self.edges, lengths, side="right")
                codes = np.where(inside & np.isfinite(lengths), bin_, codes)
        return (codes,)


@dataclass(frozen=True, slots=True, eq=False)
class StudyScores:
    """A group's fit of the declared formula: B (p, q) with Bz̃ white columns x, v/σ (q,) with v the residual."""

    whitener: FloatArray
    residual: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class StudyScoresMap:
    """Gives scores (Gp, rows), divided by C = `limit`."""

    coding: TermCoding
    groups: RecordGroups
    frames: tuple[MomentFrame, ...]
    scores: tuple[StudyScores, ...]
    limit: float

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        members = self.groups.members(block, in_use(self.coding.design, block))
        x, p = standardised(self.coding, block), len(self.scores[0].whitener)
        rows = np.zeros((p * self.groups.count, block.rows))
        of_groups = zip(self.frames, self.scores, members, strict=True)
        with np.errstate(all="ignore"):
            for g, (frame, scores, inside) in enumerate(of_groups):
                _, w = frame.weighted(x)
                residual = on_lattice(scores.residual[None, :], len(x)) @ x
                white = on_lattice(scores.whitener, len(x)) @ x
                white *= w * residual / self.limit
                rows[g * p : (g + 1) * p] = np.where(inside, white, 0.0)
        return (rows,)


def _codes(members: list[BoolArray]) -> FloatArray:
    """(rows,) the group of each record, −1 where it is in none."""
    codes = np.full(len(members[0]), -1.0)
    for g, inside in enumerate(members):
        codes[inside] = g
    return codes
