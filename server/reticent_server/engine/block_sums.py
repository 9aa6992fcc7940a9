# SPDX-License-Identifier: Apache-2.0
"""A step's exact integer statistics of one block; those of blocks add."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import (
    Block,
    ByGroup,
    Contribution,
    GramSum,
    OneVector,
    Part,
    Placed,
    Scaled,
    SumStep,
)
from reticent_server.mechanisms import disjoint_groups, registry
from reticent_server.mechanisms.disjoint_groups import GroupsMap


def block_sums(step: SumStep, block: Block) -> list[Any]:
    """The step's statistics of the block, in the block's scratch."""
    block = _taken_out(block)
    if isinstance(step.joint, ByGroup) and isinstance(step.map_fn, GroupsMap):
        return _by_group(step.map_fn, step.parts, step.joint, block)
    return _of_all(step.map_fn, step.parts, step.joint, block)


# times as many rows in a block of a step by groups as in others: each of its groups is worked on by
# itself; speed only
GROUPED = 16
_LEAST_ROWS = 1 << 9  # of a group, worked on at once: below it a call costs most; speed only


def _by_group(map_fn: GroupsMap, parts: Sequence[Part], joint: ByGroup, block: Block) -> list[Any]:
    """One group after another, in the same memory; of a large group as many rows at a time as a
    block of a step without groups has."""
    most = max(_LEAST_ROWS, block.rows // GROUPED)
    groups = zip(
        map_fn.maps,
        disjoint_groups.of_each(joint, parts),
        joint.each,
        map_fn.cut(block),
        strict=True,
    )
    return [
        total
        for own_map, own_parts, each, own in groups
        for total in _in_turn(own_map, own_parts, each, disjoint_groups.cut_short(own, most))
    ]


def _in_turn(
    map_fn: Callable[[Block], tuple[Contribution, ...]],
    parts: Sequence[Part],
    joint: OneVector | None,
    blocks: Iterable[Block],
) -> list[Any]:
    totals: list[Any] | None = None
    for block in blocks:
        totals = added(totals, _of_all(map_fn, parts, joint, block))
    return totals or []


def _of_all(
    map_fn: Callable[[Block], tuple[Contribution, ...]],
    parts: Sequence[Part],
    joint: OneVector | ByGroup | None,
    block: Block,
) -> list[Any]:
    contributions = map_fn(block)
    for part, contribution in zip(parts, contributions, strict=True):
        _check_number(part, contribution, block)
    usable = without_unusable(contributions, block.unusable)
    return registry.encode_all(parts, usable, block.scratch, joint)


def _check_number(part: Part, contribution: Contribution, block: Block) -> None:
    """ValueError unless there is one contribution for each of a part's rows, or for all places of
    each person; of a whole Gram sum one vector for each place of whole persons."""
    if part.person_rows == 1:
        return
    vectors = contribution.vectors if isinstance(contribution, Scaled | Placed) else contribution
    whole = isinstance(part, GramSum) and part.whole
    places = vectors.shape[-1] * (1 if whole else part.person_rows)
    if block.unusable is not None or places != block.rows or places % part.person_rows:
        raise ValueError("contributions are not those of whole persons")


def _taken_out(block: Block) -> Block:
    """The records that the step is about, as a block of their own."""
    index = block.records
    if index is None:
        return block
    columns = {
        name: values.take(index, out=block.scratch.array(f"column {name}", len(index)), mode="clip")
        for name, values in block.columns.items()
    }
    return replace(
        block,
        rows=len(index),
        columns=columns,
        missing={name: mask[index] for name, mask in block.missing.items()},
        unusable=None if block.unusable is None else block.unusable[index],
        records=None,
    )


def added(totals: list[Any] | None, sums: list[Any]) -> list[Any]:
    """Adds the statistics of one more part of the rows to `totals`, None before the first."""
    return sums if totals is None else [a + b for a, b in zip(totals, sums, strict=True)]


def without_unusable(
    contributions: Sequence[Contribution], unusable: NDArray[np.bool_] | None
) -> Sequence[Contribution]:
    """The contributions, but none of the unusable records: what is not finite counts nowhere."""
    if unusable is None or not unusable.any():
        return contributions
    return [_weightless(c, unusable) for c in contributions]


def _weightless(contribution: Contribution, unusable: NDArray[np.bool_]) -> Contribution:
    if isinstance(contribution, Scaled):
        return replace(contribution, weights=np.where(unusable, np.nan, contribution.weights))
    if isinstance(contribution, Placed):
        return replace(contribution, vectors=np.where(unusable, np.nan, contribution.vectors))
    return np.where(unusable, np.nan, contribution)
