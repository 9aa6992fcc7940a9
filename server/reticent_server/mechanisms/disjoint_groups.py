# SPDX-License-Identifier: Apache-2.0
"""Steps about disjoint groups of records, in one pass and for one charge: parallel composition, for
replacement.

Domain: tables of n records with a column `by`; the public codes of G groups. Neighbours: one record
(or the ≤ m rows of one unit) replaced; a replaced record may move from one group to another. Group
g has a step of its own, whose parts see the records of the group alone; which step that is may
depend on everything that was released before. Output: the parts of all groups. Tier: that of the
parts.

*Disjoint, enforced here.* `GroupsMap` cuts a block by the column's codes and gives each group's map
its own records only: a record whose cell is missing, of no group or cannot be read is seen by none.
Where the engine has brought the records into the order of the groups before (`order`, once for all
passes of a release), each is still looked at here. What a group's map computes cannot depend on
another group's records, whatever the map is.

*The charge.* Fix everything released so far. A part's noise (or draw) is independent of that of the
others, so losses in zCDP add up over parts, and a group without a changed record loses nothing.
Replacing a record is one of

    inside   both records are in group g: the step of g alone has neighbouring tables, and costs
             ρ_g (mechanisms.registry)
    moved    it leaves group a and enters group b (or either is none): each of the two steps has one
             record more or less, and costs λ_a + λ_b with λ the sum over the step's parts of what
             one record more costs

        VectorSum      ‖q‖ ≤ C of Δ = 2C          ρ/4
        GramSum        ‖qqᵀ‖ ≤ C² of Δ = √2 C²    ρ/2
          signed       C² of Δ = 2C²              ρ/4
        CountSum       1 of Δ = √2                ρ/2
          one bin      1 of Δ = 1                 ρ
        RunningCounts  a column of Δ/√2           ρ/2
        PowerSum                                  ρ, as no less is proved
        QuantileTree                              mechanisms.quantile_tree.leaving_rho

(a code that leaves running counts takes one column away, ‖q_i‖² ≤ max ‖q_j‖² = Δ²/2:
mechanisms.running_counts), so the step costs max(max ρ_g, λ_a + λ_b) over pairs of groups: not a
G-fold, and at most twice one group's. Vectors, Gram sums and running counts cost the same as one
group's alone (ρ/2 and ρ together are at most what one pair inside costs), a count of one bin costs
twice as much, and a median, whose ranks move by half when a record leaves, nothing more. In parts
that are of one vector (mechanisms.one_vector) one record more changes q, qqᵀ and bbᵀ by no more
than each alone, so λ is the same sum.

*m rows.* All losses are squares of a norm of what changes, a norm over the parts of all groups
together (for a tree the L2 norm over sub-problems of the losses at a level, where L(mt) ≤ m L(t)).
By the triangle inequality m rows change at most m times what one row does, and every ρ is made for
that m, wherever the unit's rows lie. Parts that sum a person's rows first are refused: the rows of
one person may lie in min(m, G) groups, each of which they change by a whole clip.

Errors: ValueError for parts or a map that this is not proved for. Source: McSherry (2009), Theorem
4; the release of both moves is counted as Li, Lyu, Su & Yang (2016, section 2.3) do for bounded DP.
Attack: tests/privacy/test_disjoint_groups_privacy.py.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import ceil
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.scratch import Scratch
from reticent_server.domain.steps import (
    Block,
    ByGroup,
    Contribution,
    CountSum,
    FloatArray,
    GramSum,
    OneVector,
    Part,
    PowerSum,
    QuantileTree,
    RunningCounts,
    SumStep,
    VectorSum,
)
from reticent_server.mechanisms import quantile_tree
from reticent_server.numerics.level_places import level_places

ItemT = TypeVar("ItemT")
Map = Callable[[Block], tuple[Contribution, ...]]


class _GroupScratch(Scratch):
    """A group's own arrays: all groups' contributions are there at once."""

    def __init__(self, within: Scratch, group: int) -> None:
        self._within, self._group = within, group

    def array(self, name: str, *shape: int) -> FloatArray:
        return self._within.array(f"group {self._group} {name}", *shape)


@dataclass(frozen=True, slots=True)
class GroupsMap:
    """The contributions of every group's records, one group after another. codes: (G,) of `column`,
    all different."""

    column: str
    codes: tuple[float, ...]
    maps: tuple[Map, ...]

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        """All of them at once."""
        return tuple(
            contribution
            for g, (map_fn, own) in enumerate(zip(self.maps, self.cut(block), strict=True))
            for contribution in map_fn(replace(own, scratch=_GroupScratch(block.scratch, g)))
        )

    def cut(self, block: Block) -> Iterator[Block]:
        """Each group's records, as a block of their own. Raises ValueError where a block that is
        said to be in order is not."""
        if block.ends is not None:
            self._check_order(block, block.ends)
            return (_records(block, first, last) for first, last in pairwise((0, *block.ends)))
        order, ends = self.order(block)
        places = order[: ends[-1]]
        columns = {
            name: values.take(
                places, out=block.scratch.array(f"by group {name}", len(places)), mode="clip"
            )
            for name, values in block.columns.items()
        }
        missing = {name: mask.take(places) for name, mask in block.missing.items()}
        together = Block(block.start, len(places), columns, missing, block.scratch)
        return (_records(together, first, last) for first, last in pairwise((0, *ends)))

    def _check_order(self, block: Block, ends: tuple[int, ...]) -> None:
        rising = all(first <= last for first, last in pairwise((0, *ends, block.rows)))
        if len(ends) != len(self.codes) or not rising:
            raise ValueError("groups end one after another")
        values = block.columns[self.column][: ends[-1]]
        alien = values != np.repeat(self.codes, np.diff(ends, prepend=0))
        for lost in self._lost(block):
            alien |= lost[: ends[-1]]
        if alien.any():
            raise ValueError("a group has records of its own only")

    def _lost(self, block: Block) -> list[NDArray[np.bool_]]:
        """(rows,) masks of records that are in no group, whatever their level."""
        masks = (block.missing.get(self.column), block.unusable)
        return [mask for mask in masks if mask is not None]

    def order(self, block: Block) -> tuple[NDArray[np.int64], tuple[int, ...]]:
        """The places in the block (rows,) of the groups' records, group after group in stored
        order, then of all others; and where each group ends."""
        group, none = level_places(self.codes, block.columns[self.column]), len(self.codes)
        out = group < 0
        for lost in self._lost(block):
            out |= lost
        group = np.where(out, none, group).astype(np.int16)  # of few bits: sorted by digits
        ends = np.cumsum(np.bincount(group, minlength=none + 1))[:-1].tolist()
        return np.argsort(group, kind="stable"), tuple(ends)


def _records(block: Block, first: int, last: int) -> Block:
    """Some consecutive records, as a block of their own."""
    columns = {name: values[first:last] for name, values in block.columns.items()}
    missing = {name: mask[first:last] for name, mask in block.missing.items()}
    return Block(block.start, last - first, columns, missing, block.scratch)


def cut_short(block: Block, most: int) -> Iterator[Block]:
    """The block's records in blocks of at most `most`, one after another; one without any where
    there are none."""
    for first in range(0, max(block.rows, 1), most):
        yield _records(block, first, min(first + most, block.rows))


def grouped(label: str, column: str, codes: Sequence[float], steps: Sequence[SumStep]) -> SumStep:
    """The steps (G,) of the groups with these codes of `column`, as one. Raises ValueError."""
    if len(set(codes)) != len(steps) or any(step.subset is not None for step in steps):
        raise ValueError("one step for each group, about all of its records")
    each = []
    for step in steps:
        if isinstance(step.joint, ByGroup):
            raise ValueError("groups have no groups")  # noqa: TRY004 - one error for all that is not proved
        each.append(step.joint)
    return SumStep(
        label,
        tuple(part for step in steps for part in step.parts),
        GroupsMap(column, tuple(codes), tuple(step.map_fn for step in steps)),
        joint=ByGroup(tuple(len(step.parts) for step in steps), tuple(each)),
    )


def of_each(joint: ByGroup, items: Sequence[ItemT]) -> list[Sequence[ItemT]]:
    """What belongs to each group, of what belongs to the parts of a step."""
    if sum(joint.sizes) != len(items):
        raise ValueError("a step's parts are those of its groups")
    ends = np.cumsum(joint.sizes).tolist()
    return [items[end - size : end] for end, size in zip(ends, joint.sizes, strict=True)]


def rho(step: SumStep, alone: Callable[[SumStep], int]) -> int:
    """What a step by groups costs, in RHO_UNITS. alone: what one group's costs. Raises
    ValueError."""
    joint, map_fn = step.joint, step.map_fn
    if not (isinstance(joint, ByGroup) and isinstance(map_fn, GroupsMap)):
        raise ValueError("a step by groups has a map by groups")  # noqa: TRY004 - as above
    codes = map_fn.codes
    if not len(set(codes)) == len(codes) == len(map_fn.maps) == len(joint.sizes):
        raise ValueError("groups are disjoint, and each has its parts")
    by_group = list(zip(of_each(joint, step.parts), joint.each, strict=True))
    inside = max(alone(_alone(step, parts, each)) for parts, each in by_group)
    leaving = sorted(sum(map(leaving_rho, parts), start=Fraction(0)) for parts, _ in by_group)
    return max(inside, ceil(sum(leaving[-2:], start=Fraction(0))))


def of_equal_parts(part: Part) -> int:
    """What one such part for each of two or more groups costs, in RHO_UNITS."""
    return max(part.rho, ceil(2 * leaving_rho(part)))


def _alone(step: SumStep, parts: Sequence[Part], joint: OneVector | None) -> SumStep:
    return replace(step, parts=tuple(parts), joint=joint)


def leaving_rho(part: Part) -> Fraction:
    """λ of one part, in RHO_UNITS: what one record more or less costs. Raises ValueError for sums
    of persons."""
    if part.person_rows != 1:
        raise ValueError("a person's rows may lie in several groups")
    match part:
        case VectorSum() | GramSum(signed=True):
            return Fraction(part.rho, 4)
        case GramSum() | RunningCounts():
            return Fraction(part.rho, 2)
        case CountSum(bins=bins):
            return Fraction(part.rho, 1 if bins == 1 else 2)
        case QuantileTree():
            return Fraction(quantile_tree.leaving_rho(part))
        case PowerSum():
            return Fraction(part.rho)
