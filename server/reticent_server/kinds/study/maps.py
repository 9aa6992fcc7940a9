# SPDX-License-Identifier: Apache-2.0
"""What one record contributes to a study: functions of the record and of public values only.

    u = W_g z̃ in the record's group g,  ω = min(1, R_g²/‖u‖²)
    rows     e_g ⊗ u √ω/R_g        ‖·‖ ≤ 1    its Gram sum's diagonal blocks: the groups' moments
    lengths  the bin of ‖u‖²        one count
    scores   e_g ⊗ ω Bx r/(σC)     ‖·‖ ≤ 1    cut where longer; Gram sum: meat of a declared formula

Of persons with several rows (person_rows m > 1) the length is that of all of a person's rows
together:

    A = Σ_t u_t u_tᵀ over the person's rows in use,  ω = min(1, R²/‖A‖_F),  one for all of them
    rows     u_t √ω/R                ‖Σ_t(·)(·)ᵀ‖_F ≤ 1
    lengths  the bin of ‖A‖_F         one count
    scores   ω Σ_t Bx_t r_t/(σC)      ‖·‖ ≤ 1

which are functions of one person's places. z̃ and W are on lattices, so a record's values are
bit-identical whatever block it comes in (fitting.maps).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import Block, Contribution, FloatArray, multiplied
from reticent_server.fitting.coding import TermCoding
from reticent_server.fitting.maps import coordinates, on_lattice, standardised
from reticent_server.fitting.person_scores import Lengths, lengths_of
from reticent_server.numerics.evaluate import in_use
from reticent_server.numerics.lengths import squared_lengths
from reticent_server.numerics.mallows import mallows_weights
from reticent_server.numerics.person_columns import person_sums, prepared
from reticent_server.numerics.person_grams import gram_lengths

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RecordGroups:
    """Disjoint groups of records by the values `codes` of a column; without a column one group of
    all."""

    column: str | None = None
    codes: tuple[float, ...] = (0.0,)

    @property
    def count(self) -> int:
        """How many groups there are, 1 without a column."""
        return len(self.codes)

    def members(self, block: Block, used: BoolArray) -> list[BoolArray]:
        """(rows,) for each group."""
        if self.column is None:
            return [used]
        values = block.columns[self.column]
        return [used & (values == code) for code in self.codes]


@dataclass(frozen=True, slots=True, eq=False)
class MomentFrame:
    """Where a group's moments are taken: W (q, q) on the lattice, and R²; m where a person's rows
    count together, else 1."""

    transform: FloatArray
    radius_squared: float
    person_rows: int = 1

    def weighted(self, x: FloatArray, inside: BoolArray) -> tuple[FloatArray, FloatArray]:
        """u (q, rows), new, of persons 0 outside; and ω (rows,)."""
        u, lengths = self.measured(x, inside)
        return u, np.repeat(mallows_weights(lengths, self.radius_squared), self.person_rows)

    def measured(self, x: FloatArray, inside: BoolArray) -> tuple[FloatArray, FloatArray]:
        """u as above, and (rows,) ‖u‖², of persons (persons,) ‖A‖_F."""
        u = np.array(coordinates(self.transform, x))
        if self.person_rows == 1:
            return u, squared_lengths(u, np.empty(u.shape[1]))
        u = np.where(inside & np.isfinite(u).all(axis=0), u, 0.0)
        return u, gram_lengths(u, self.person_rows)


@dataclass(frozen=True, slots=True, eq=False)
class MomentsMap:
    """Gives rows (Gq, rows); with `count` the code g of each record in use after it."""

    coding: TermCoding
    groups: RecordGroups
    frames: tuple[MomentFrame, ...]
    count: bool = False

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        block = prepared(self.coding.design, block)
        members = self.groups.members(block, in_use(self.coding.design, block))
        x, q = standardised(self.coding, block), self.coding.size
        rows = np.zeros((q * self.groups.count, block.rows))
        with np.errstate(all="ignore"):
            for g, (frame, inside) in enumerate(zip(self.frames, members, strict=True)):
                u, w = frame.weighted(x, inside)
                u *= np.sqrt(w / frame.radius_squared)
                rows[g * q : (g + 1) * q] = np.where(inside, u, 0.0)
        return (rows, _codes(members)) if self.count else (rows,)


@dataclass(frozen=True, slots=True, eq=False)
class LengthsMap:
    """Gives (rows,) codes gB + b of the bin b of ‖u‖² among B = len(edges) + 1; of persons
    (persons,) of ‖A‖_F, −1 for one without a row in use."""

    coding: TermCoding
    groups: RecordGroups
    frames: tuple[MomentFrame, ...]
    edges: tuple[float, ...]

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        block = prepared(self.coding.design, block)
        members = self.groups.members(block, in_use(self.coding.design, block))
        x, bins = standardised(self.coding, block), len(self.edges) + 1
        m = self.frames[0].person_rows
        codes = np.full(block.rows // m, -1.0)
        with np.errstate(all="ignore"):
            for g, (frame, inside) in enumerate(zip(self.frames, members, strict=True)):
                _, lengths = frame.measured(x, inside)
                bin_ = g * bins + np.searchsorted(self.edges, lengths, side="right")
                some = inside if m == 1 else lengths > 0
                codes = np.where(some & np.isfinite(lengths), bin_, codes)
        return (codes,)


@dataclass(frozen=True, slots=True, eq=False)
class StudyScores:
    """A group's fit of the declared formula: B (p, q) with Bz̃ white columns x, v/σ (q,) with v the
    residual."""

    whitener: FloatArray
    residual: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class StudyScoresMap:
    """Gives scores (Gp, rows), divided by C = `limit`; of persons (Gp, persons)."""

    coding: TermCoding
    groups: RecordGroups
    frames: tuple[MomentFrame, ...]
    scores: tuple[StudyScores, ...]
    limit: float

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        block = prepared(self.coding.design, block)
        members = self.groups.members(block, in_use(self.coding.design, block))
        x, p = standardised(self.coding, block), len(self.scores[0].whitener)
        m = self.frames[0].person_rows
        rows = np.zeros((p * self.groups.count, block.rows // m))
        of_groups = zip(self.frames, self.scores, members, strict=True)
        with np.errstate(all="ignore"):
            for g, (frame, scores, inside) in enumerate(of_groups):
                _, w = frame.weighted(x, inside)
                residual = on_lattice(scores.residual[None, :], len(x)) @ x
                white = on_lattice(scores.whitener, len(x)) @ x
                white *= w * residual / self.limit
                white = np.where(inside, white, 0.0)
                rows[g * p : (g + 1) * p] = white if m == 1 else _summed(white, m)
        return (rows,)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreLengthsMap:
    """Gives (persons,) the bin of ‖s‖ for persons' scores, whose own `limit` is 1."""

    scores: StudyScoresMap
    lengths: Lengths

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        (sums,) = self.scores(block)
        with np.errstate(all="ignore"):
            return (self.lengths.codes(lengths_of(multiplied(sums))),)


def _summed(rows: FloatArray, m: int) -> FloatArray:
    """(p, persons) sums over a person's rows; a row that is not finite is none."""
    return person_sums(np.where(np.isfinite(rows).all(axis=0), rows, 0.0), m)


def _codes(members: list[BoolArray]) -> FloatArray:
    """(rows,) the group of each record, −1 where it is in none."""
    codes = np.full(len(members[0]), -1.0)
    for g, inside in enumerate(members):
        codes[inside] = g
    return codes
