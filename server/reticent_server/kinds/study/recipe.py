# SPDX-License-Identifier: Apache-2.0
"""A study as a generator of steps that sees released values only.

1. Two rounds of Gram matrices whiten the columns (fitting.whitening), group by group; the first
   counts the records in use.
2. A histogram of ‖u‖² chooses each group's radius (radius).
3. One Gram matrix in the coordinates so found: the study's moments.
4. With a declared formula, the Gram matrix of its scores (main).

Privacy: unconditional, for every table and every n; neighbours replace one unit of m rows at most.
Each part's contributions are functions of one record and of earlier releases (maps), so that the
parts' ρ add up under adaptive composition:

    moments, rounds   ‖e_g ⊗ u√ω/R_g‖ ≤ 1     GramSum    Δ = √2 m
    scores            the same, cut at 1       GramSum    Δ = √2 m
    lengths, count    one bin                  CountSum   Δ = √2 m  (one bin: m)

and where all rows of a person count together (maps; A a person's Gram matrix, s the person's score)

    moments, rounds   ‖ωA/R²‖_F ≤ 1    whole GramSum  Δ = √2   (mechanisms.person_grams)
    scores            ‖s‖ ≤ C          GramSum        Δ = √2
    lengths           one bin          CountSum       Δ = √2   (of ‖A‖_F, and of ‖s‖)
    count             rows             CountSum       Δ = m

Groups need no second charge. For a record replaced by one of another group, the two contributions
are orthogonal: ‖vvᵀ − v′v′ᵀ‖_F² = |v|⁴ + |v′|⁴ − 2(vᵀv′)² ≤ 2, the bound of one group, and e_g ⊗ u
is a vector like any other. What lies between two groups' blocks is noise alone. The clips are
enforced by mechanisms.noisy_sum; W, R_g, σ and θ come from releases. Everything after the last
release is post-processing.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.steps import (
    CountSum,
    FloatArray,
    GramSum,
    Part,
    Released,
    Step,
    SumStep,
)
from reticent_server.fitting.coding import TermCoding
from reticent_server.fitting.maps import invertible_on_lattice
from reticent_server.fitting.public.coordinates import Coordinates
from reticent_server.fitting.whitening import Whitening, unwhitened, whitened
from reticent_server.kinds.study.leaning import NarrowMoments, ratio
from reticent_server.kinds.study.maps import LengthsMap, MomentFrame, MomentsMap, RecordGroups
from reticent_server.kinds.study.moments import Moments
from reticent_server.kinds.study.radius import EDGES, Radius, Tail, choose_radius

_LEAST_SHARE = 0.001  # of the records: a group is not taken to have fewer

Steps = Generator[Step, tuple[Released, ...], "list[Sampled]"]


@dataclass(frozen=True, slots=True)
class StudyBudget:
    """ρ (RHO_UNITS) of each release: rounds (ρ, squared radius in typical lengths), count (0 where
    it is n), lengths, moments, scores (0 without a declared formula), and the lengths of persons'
    scores (0 where rows count one by one)."""

    rounds: tuple[tuple[int, float], ...]
    count: int
    lengths: int
    moments: int
    scores: int
    score_lengths: int = 0

    @property
    def rho(self) -> int:
        """What all releases cost, in RHO_UNITS."""
        rounds = sum(rho for rho, _ in self.rounds)
        once = self.count + self.lengths + self.moments + self.scores + self.score_lengths
        return rounds + once


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """A group's moments of z̃, those of a narrower radius, the frame they were taken in, what its
    radius leaves out, and its records in use, with the sd of their number; persons with a row in
    use, where a person's rows count together, and the sd of their number."""

    moments: Moments
    narrow: NarrowMoments
    frame: MomentFrame
    radius: Radius
    records: float
    records_sd: float
    persons: float | None = None
    persons_sd: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Sampling:
    """A planned study of n records: what is asked of them. unit_rows: m; person_rows: m where a
    person's rows count together, else 1."""

    coding: TermCoding
    coordinates: Coordinates
    groups: RecordGroups
    shares: StudyBudget
    n: int
    unit_rows: int
    person_rows: int = 1

    def sampled(self) -> Steps:
        """The moments of each group."""
        states, narrow, records, records_sd = yield from self._whitened()
        lengths, noise = yield from self._lengths(states)
        unit = self.unit_noise
        radii = [
            choose_radius(counts, noise, self.coding.size, number, unit, self.length, self.trace)
            for counts, number in zip(lengths, records, strict=True)
        ]
        frames = tuple(
            MomentFrame(state.transform, radius.squared, self.person_rows)
            for state, radius in zip(states, radii, strict=True)
        )
        part = self._gram(self.shares.moments)
        (released,) = yield SumStep(
            "moments", (part,), MomentsMap(self.coding, self.groups, frames)
        )
        tails = [Tail.seen(counts, noise, self.length) for counts in lengths]
        inner = self.inner
        ratios = [
            ratio(radius.excess, self.trace * tail.excess(inner))
            for radius, tail in zip(radii, tails, strict=True)
        ]
        return [
            Sampled(
                _moments(released, g, frame),
                NarrowMoments(
                    narrow[g].sums,
                    narrow[g].root,
                    narrow[g].sd,
                    ratios[g],
                    radius.typical(self.coding.size, records[g]),
                ),
                frame,
                radius,
                records[g],
                records_sd,
                float(max(lengths[g].sum(), 1.0)) if self.person_rows > 1 else None,
                noise * sqrt(lengths.shape[1]) if self.person_rows > 1 else None,
            )
            for g, (frame, radius) in enumerate(zip(frames, radii, strict=True))
        ]

    @property
    def length(self) -> float:
        """A typical length: ‖u‖² of a white row, or ‖A‖_F of m white rows."""
        q, m = self.coding.size, self.person_rows
        return typical_length(q, m)

    @property
    def trace(self) -> float:
        """The trace of a person's Gram matrix over its length, typically; 1 of a row's."""
        q, m = self.coding.size, self.person_rows
        return sqrt(m * q / (q + m - 1))

    @property
    def inner(self) -> float:
        """r² of the narrower moments, which are the last round's."""
        return self._round(len(self.shares.rounds) - 1)

    def _round(self, k: int) -> float:
        """The squared radius of a round."""
        return self.shares.rounds[k][1] * self.length

    @property
    def counts(self) -> tuple[CountSum, ...]:
        """The parts that are counts, in all steps."""
        return (self._records, self.by_length) if self.shares.count else (self.by_length,)

    @property
    def _records(self) -> CountSum:
        return CountSum(self.groups.count, self.shares.count, self.unit_rows)

    @property
    def by_length(self) -> CountSum:
        """The histogram of lengths."""
        bins = (len(EDGES) + 1) * self.groups.count
        return CountSum(bins, self.shares.lengths, self._weight, self.person_rows)

    @property
    def unit_noise(self) -> float:
        """s at R² = 1."""
        return sqrt(2) * self._weight / sqrt(2 * self.shares.moments / RHO_UNITS)

    @property
    def _weight(self) -> int:
        """Contributions of one unit."""
        return self.unit_rows // self.person_rows

    def _gram(self, rho: int) -> GramSum:
        size, m = self.coding.size * self.groups.count, self.person_rows
        return GramSum(size, 1.0, rho, self._weight, person_rows=m, whole=m > 1)

    def _whitened(
        self,
    ) -> Generator[
        Step, tuple[Released, ...], tuple[list[Whitening], list[Moments], list[float], float]
    ]:
        """The coordinates, the last round's moments, records in use by group with the sd of their
        number."""
        q, G, m = self.coding.size, self.groups.count, self.person_rows
        states = [unwhitened(self.coordinates, self.shares.rounds[0][1] * q)] * G
        records, records_sd = [float(self.n)] * G, 0.0
        narrow: list[Moments] = []
        for k, (rho, factor) in enumerate(self.shares.rounds):
            states = [_rounded(state) for state in states]
            squared = self._round(k)
            frames = tuple(MomentFrame(state.transform, squared, m) for state in states)
            counted = k == 0 and self.shares.count > 0
            parts: list[Part] = [self._gram(rho)]
            if counted:
                parts.append(self._records)
            rows = MomentsMap(self.coding, self.groups, frames, counted)
            released = yield SumStep(f"whitening {k + 1}", tuple(parts), rows)
            if counted:
                records_sd = released[1].sd
                records = np.clip(released[1].values, _LEAST_SHARE * self.n, self.n).tolist()
            last = k == len(self.shares.rounds) - 1
            narrow = [_moments(released[0], g, frame) for g, frame in enumerate(frames)]
            states = [
                whitened(state, _block(released[0], g, q, squared), number, factor * q, last=last)
                for g, (state, number) in enumerate(zip(states, records, strict=True))
            ]
        return [_rounded(state) for state in states], narrow, records, records_sd

    def _lengths(
        self, states: list[Whitening]
    ) -> Generator[Step, tuple[Released, ...], tuple[FloatArray, float]]:
        """(G, bins) counts by ‖u‖², and their noise."""
        edges = tuple(self.length * edge for edge in EDGES)
        bins, m = len(edges) + 1, self.person_rows
        frames = tuple(MomentFrame(state.transform, edges[-1], m) for state in states)
        rows = LengthsMap(self.coding, self.groups, frames, edges)
        (released,) = yield SumStep("lengths", (self.by_length,), rows)
        return released.values.reshape(self.groups.count, bins), released.sd


def typical_length(q: int, m: int) -> float:
    """q of one row, whose ‖u‖² is q on average; of m white rows that have nothing in common
    √(mq² + m(m − 1)q) is the root mean square of ‖A‖_F. Lengths of persons spread less, and radii
    are multiples of this: 3 of them, the least radius, are 1 + 2/√m of that mean."""
    if m == 1:
        return float(q)
    return sqrt(m * q**2 + m * (m - 1) * q) * (1 + 2 / sqrt(m)) / 3


def _rounded(state: Whitening) -> Whitening:
    return replace(state, transform=invertible_on_lattice(state.transform))


def _block(released: Released, g: int, q: int, radius_squared: float) -> Released:
    """A group's diagonal block (q, q), in the units of u."""
    own = slice(g * q, (g + 1) * q)
    return Released(released.values[own, own] * radius_squared, released.sd * radius_squared)


def _moments(released: Released, g: int, frame: MomentFrame) -> Moments:
    """A group's moments of z̃ from the release of u's."""
    own = _block(released, g, len(frame.transform), frame.radius_squared)
    inverse: FloatArray = np.asarray(np.linalg.inv(frame.transform), np.float64)
    return Moments(inverse @ own.values @ inverse.T, inverse.T, own.sd)
