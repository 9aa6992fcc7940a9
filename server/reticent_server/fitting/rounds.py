# SPDX-License-Identifier: Apache-2.0
"""The rounds of a whitening as steps: Gram matrices of the regressors, and the number of records in
use."""

from collections.abc import Generator, Sequence
from dataclasses import replace

import numpy as np

from reticent_server.domain.row_subset import RowSubset
from reticent_server.domain.steps import (
    CountSum,
    GramSum,
    OneVector,
    Part,
    Released,
    Step,
    SumStep,
    VectorSum,
)
from reticent_server.fitting.budget import Sizes
from reticent_server.fitting.coding import TermCoding
from reticent_server.fitting.identifiability import any_present
from reticent_server.fitting.maps import HALF, RowsMap, invertible_on_lattice
from reticent_server.fitting.public.coordinates import Coordinates
from reticent_server.fitting.whitening import Whitening, sampled, unwhitened, whitened
from reticent_server.mechanisms.quantise import exactly

_LEAST_SHARE = 0.001  # of the records, in use: a released number of them is not taken to be less


def part_of(sizes: Sizes, stride: int) -> RowSubset | None:
    """The part of the rows that a step asks for: one unit of `stride`; None for all."""
    return None if stride == 1 else RowSubset(stride, unit=sizes.unit_rows)


def whole_of(released: tuple[Released, ...], n: int) -> tuple[Released, ...]:
    """Sums over a part of n records as they would be over all of them, with their noise; sums over
    all as they are."""
    return tuple(
        r
        if r.rows is None
        else replace(
            r, values=r.values * n / max(r.rows, 1), sd=r.sd * n / max(r.rows, 1), rows=None
        )
        for r in released
    )


def whitening_rounds(
    coding: TermCoding,
    coordinates: Coordinates,
    rounds: Sequence[tuple[int, float]],
    count_rho: int,
    sizes: Sizes,
    strides: Sequence[int] | None = None,
) -> Generator[Step, tuple[Released, ...], tuple[Whitening, float, bool]]:
    """The whitening, the number of records in use as released, and whether it says that there are
    any.

    rounds: (ρ, squared radius per coordinate) of each. strides: of the units that each goes over,
    all without them. count_rho: of the number, 0 where it is n. Of a weighted design it is the sum
    of shares a ∈ [0, 1], released as Σ(a − ½) over all n records, each within ±½.
    """
    q, m = sizes.size, sizes.unit_rows
    count, present, weighted = float(sizes.n), True, coding.design.weight is not None
    state = unwhitened(coordinates, rounds[0][1] * q)
    for k, (rho, factor) in enumerate(rounds):
        counted = k == 0 and count_rho > 0
        W = invertible_on_lattice(state.transform)
        state = replace(state, transform=W)
        parts: list[Part] = [GramSum(q, float(np.sqrt(factor * q)), rho, m)]
        if counted:
            shares = exactly(VectorSum(1, HALF, count_rho, m), HALF)
            parts.append(shares if weighted else CountSum(1, count_rho, m))
        rows = RowsMap(coding, W, factor * q, counted)
        joint = OneVector(curvature=0, used=1) if counted and not weighted else None
        subset = part_of(sizes, strides[k] if strides else 1)
        step = SumStep(f"whitening {k + 1}", tuple(parts), rows, subset, joint)
        released = whole_of((yield step), sizes.n)
        if counted:
            number = released[1]
            if weighted:
                number = replace(number, values=number.values + HALF * sizes.n)
            count = float(np.clip(float(number.values[0]), _LEAST_SHARE * sizes.n, sizes.n))
            present = any_present(number)
        last = k == len(rounds) - 1
        state = whitened(state, released[0], count, factor * q, last=last)
        if subset is not None:
            state = sampled(state, factor * q, count / subset.stride)
    return replace(state, transform=invertible_on_lattice(state.transform)), count, present
