# SPDX-License-Identifier: Apache-2.0
"""One table: what a part is, what it accumulates, and how it is released."""

from collections.abc import Sequence
from typing import Any

from reticent_server.domain.private import Private
from reticent_server.domain.scratch import FRESH, Scratch
from reticent_server.domain.steps import (
    ByGroup,
    Contribution,
    FloatArray,
    GramSum,
    OneVector,
    Part,
    Placed,
    QuantileTree,
    Released,
    RunningCounts,
    Scaled,
    SumStep,
)
from reticent_server.mechanisms import (
    disjoint_groups,
    noisy_sum,
    one_vector,
    quantile_tree,
    running_counts,
)
from reticent_server.mechanisms._sampler import SamplerError
from reticent_server.mechanisms.quantise import squared_norms


def encode(
    part: Part,
    contributions: Contribution,
    scratch: Scratch = FRESH,
    norms: FloatArray | None = None,
) -> noisy_sum.IntArray:
    """A part's exact integer statistic of one block; statistics of blocks add.

    scratch, norms: as in noisy_sum.encode.
    """
    if not isinstance(part, QuantileTree | RunningCounts):
        return noisy_sum.encode(part, contributions, scratch, norms)
    if isinstance(contributions, Scaled | Placed):
        raise TypeError("quantiles and running counts take codes")
    if isinstance(part, RunningCounts):
        return running_counts.encode(part, contributions)
    return quantile_tree.encode(part, contributions)


def rho(step: SumStep) -> int:
    """What the step costs, in RHO_UNITS: its joint parts together, and each of the others."""
    if isinstance(step.joint, ByGroup):
        return disjoint_groups.rho(step, rho)
    if step.joint is None:
        return sum(part.rho for part in step.parts)
    alone = set(range(len(step.parts))) - set(step.joint.places)
    together = one_vector.rho_of(step.parts, step.joint)
    return together + sum(step.parts[k].rho for k in alone)


def drawable(part: Part) -> bool:
    """Whether noise for its ρ has a scale that whole numbers of 64 bits hold."""
    try:
        _prepared(part)
    except SamplerError:
        return False
    return True


def _prepared(part: Part) -> None:
    match part:
        case QuantileTree():
            quantile_tree.ladder(part)
        case RunningCounts():
            running_counts.scale(part)
        case GramSum():
            noisy_sum.off_diagonal_scale(part)
            noisy_sum.scale(part)
        case _:
            noisy_sum.scale(part)


def encode_all(
    parts: Sequence[Part],
    contributions: Sequence[Contribution],
    scratch: Scratch = FRESH,
    joint: OneVector | ByGroup | None = None,
) -> list[noisy_sum.IntArray]:
    """The statistics of all parts of a step; vectors that several parts share are measured once."""
    if isinstance(joint, ByGroup):
        groups = (
            disjoint_groups.of_each(joint, parts),
            disjoint_groups.of_each(joint, contributions),
        )
        every = zip(*groups, joint.each, strict=True)
        return [total for one in every for total in encode_all(one[0], one[1], scratch, one[2])]
    shared = {id(c.vectors): c.vectors for c in contributions if isinstance(c, Scaled)}
    norms = {
        key: squared_norms(vectors, scratch, f"norms {k}")
        for k, (key, vectors) in enumerate(shared.items())
    }
    together = {}
    if joint is not None:
        together = one_vector.encode(parts, contributions, joint, scratch, norms)
    return [
        together[k]
        if k in together
        else encode(part, c, scratch, norms[id(c.vectors)] if isinstance(c, Scaled) else None)
        for k, (part, c) in enumerate(zip(parts, contributions, strict=True))
    ]


def release(part: Part, total: Private[Any]) -> Released:
    """A part's released value, from the private total over all blocks."""
    if isinstance(part, QuantileTree):
        return quantile_tree.release(part, total)
    if isinstance(part, RunningCounts):
        return running_counts.release(part, total)
    return noisy_sum.release(part, total)
