# SPDX-License-Identifier: Apache-2.0
"""Numbers, means and variances of a column by group, from one Gram sum of e_g ⊗ (a, z).

A record in use of group g has the value x, clipped to a public range and brought to
z = (x − centre)/half ∈ [−1, 1]. It contributes the matrix vvᵀ of v = e_g ⊗ (a, z), a public, e_g
the g-th unit vector of R^G: only the block of its own group is not zero, and that block adds up to
the group's

    [[a² N_g, a S_g], [a S_g, Q_g]],   N = Σ1, S = Σz, Q = Σz².

Privacy. ‖v‖² ≤ a² + 1 = R², whatever the record. Replacing a record changes the sum by vvᵀ − v′v′ᵀ,
of squared Frobenius norm ‖v‖⁴ + ‖v′‖⁴ − 2(vᵀv′)² ≤ 2R⁴: for two groups vᵀv′ = 0, and inside one
group it is ≤ 2R⁴ as for any Gram sum, attained by z = −z′ = ±1 where a = 1. So one Gram sum of clip
R answers for all groups at the Δ = √2·R² of one (parallel composition, without a second charge), a
record that moves to another group included; a record out of use or of none of the groups
contributes 0. Proof of the noise: mechanisms.noisy_sum; attack:
tests/privacy/test_named_tests_privacy.py.

Noise. With s the noise on the diagonal (s/√2 off it), the noise of a group's centred sum C = S − mN
has variance s²(m²/a⁴ + 1/(2a²)), and that of its centred square Q − 2mS + m²N has s²(1 + m²/a²)². a
is chosen for the first at the mean that public facts lead to expect. For a = 1, m = 0 the noise of
S is what a sum of z alone would have at the whole of ρ: numbers and squares come free.

Rounding. a is the same for all records and divided out: it is a whole number of steps
(mechanisms.quantise), as z is where values are whole numbers and many.

Source: Gram sums of one record each, mechanisms.noisy_sum; parallel composition, McSherry (2009).
"""

from dataclasses import dataclass
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import Block, Contribution, FloatArray, GramSum, Placed, Released
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.trust import clear
from reticent_server.kinds.shared.columns import declared
from reticent_server.kinds.shared.ranges import ClipRange
from reticent_server.kinds.shared.tables import level_axis
from reticent_server.mechanisms import noisy_sum
from reticent_server.mechanisms.quantise import exactly, granule
from reticent_server.numerics.evaluate import in_use
from reticent_server.numerics.level_places import level_places

MAX_GROUPS = 64  # as many as a reader takes in
_GROUP_MS = 4  # planned for a group whatever its size; measured: .2
_RECORD_NANOSECONDS = 80  # planned for a record's place, value and products; measured: 13 to 25
_WEIGHTS = np.linspace(1.0, 4.0, 31)  # tried for a²; beyond 4 no mean inside the range gains
LEAST_COMPARED = 2  # groups of a comparison


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups that are compared: the stored values of `column`, and their names; one group of
    all without one."""

    column: str | None
    codes: tuple[float, ...] = (0.0,)
    levels: tuple[str, ...] = ("all",)

    @property
    def size(self) -> int:
        """G, the number of groups."""
        return len(self.codes)

    def places(self, block: Block, used: NDArray[np.bool_]) -> NDArray[np.int64]:
        """(rows,) the place of a record's group among these; −1 for a record of none of them, or
        that is not `used`."""
        if self.column is None:
            return np.where(used, 0, -1)
        return np.where(used, level_places(self.codes, block.columns[self.column]), -1)


@dataclass(frozen=True, slots=True)
class ComparedValue:
    """The number that is compared: a column, or one column minus another."""

    column: str
    minus: str | None = None

    def of(self, block: Block) -> FloatArray:
        """(rows,) the number of each record, not clipped."""
        values = block.columns[self.column]
        return values if self.minus is None else values - block.columns[self.minus]


@dataclass(frozen=True, slots=True)
class GroupMomentsMap:
    """(2G, rows) e_g ⊗ (a, z): the weights a by group, then the values z by group."""

    design: Design
    groups: Groups
    value: ComparedValue
    range: ClipRange
    a: float

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        group = self.groups.places(block, in_use(self.design, block))
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            z = np.clip((self.value.of(block) - self.range.centre) / self.range.half, -1.0, 1.0)
        return (weighted_values(self.a, z, group, self.groups.size),)


def weighted_values(a: float, z: FloatArray, group: NDArray[np.int64], groups: int) -> Contribution:
    """(2 · groups, rows) e_g ⊗ (a, z) of records of group g; 0 for those of none."""
    z = np.where(group >= 0, z, 0.0)
    if groups == 1:
        return np.stack([np.where(group >= 0, a, 0.0), z])
    return Placed(np.stack([np.full(len(z), a), z]), group, groups)


@dataclass(frozen=True, slots=True, eq=False)
class GroupMoments:
    """Released numbers N, sums S and squares Q (G,) of z by group; s: noise of a diagonal entry of
    the Gram sum.

    The numbers may be negative; `at_least_one` of them is what is divided by.
    """

    N: FloatArray
    S: FloatArray
    Q: FloatArray
    s: float
    a: float

    @property
    def at_least_one(self) -> FloatArray:
        """(G,) the noisy numbers of records, at least 1, so that one can divide by them."""
        return np.maximum(self.N, 1.0)

    @property
    def means(self) -> FloatArray:
        """(G,) within [−1, 1]."""
        return np.clip(self.S / self.at_least_one, -1.0, 1.0)

    @property
    def pooled_mean(self) -> float:
        """The mean of all groups together."""
        return float(np.clip(self.S.sum() / max(self.N.sum(), 1.0), -1.0, 1.0))

    @property
    def sure(self) -> bool:
        """Whether every group's number is above its noise (fitting.trust.clear)."""
        return bool(self.known.all())

    @property
    def known(self) -> NDArray[np.bool_]:
        """(G,) which groups' numbers are above their noise (fitting.trust.clear): the others may be
        empty."""
        return np.asarray(clear(self.N, self.s / self.a**2))

    def of_groups(self, which: NDArray[np.bool_]) -> "GroupMoments":
        """Those of some groups."""
        return GroupMoments(self.N[which], self.S[which], self.Q[which], self.s, self.a)

    def centred(self, m: FloatArray | float) -> FloatArray:
        """(G,) C = S − mN: zero-mean noise at any true N, however small."""
        return self.S - m * self.N

    def centred_noise(self, m: FloatArray | float) -> FloatArray:
        """(G,) variance of the noise of C."""
        m = np.broadcast_to(np.asarray(m, dtype=np.float64), self.N.shape)
        return np.asarray(self.s**2 * (m**2 / self.a**4 + 1 / (2 * self.a**2)))

    def variances(self) -> FloatArray:
        """(G,) sample variances of z; below 0 where noise leads there."""
        N, m = self.at_least_one, self.means
        squares = self.Q - 2 * m * self.S + m**2 * self.N
        return np.asarray(squares / np.maximum(N - 1, 1.0))

    def variance_noise(self) -> FloatArray:
        """(G,) variance of the noise of `variances`."""
        N, m = self.at_least_one, self.means
        return np.asarray((self.s * (1 + m**2 / self.a**2) / N) ** 2)


def moments(released: Released, groups: int, a: float) -> GroupMoments:
    """The moments of the released Gram sum of a GroupMomentsMap."""
    G = released.values
    first, second = np.arange(groups), groups + np.arange(groups)
    return GroupMoments(
        N=G[first, first] / a**2,
        S=G[first, second] / a,
        Q=G[second, second],
        s=released.sd,
        a=a,
    )


def moments_part(
    facts: DatasetFacts, groups: Groups, a: float, rho: int, unit: float | None = None
) -> tuple[GramSum, float]:
    """The Gram sum of e_g ⊗ (a, z), R = √(a² + 1), at `rho` (RHO_UNITS), and the weight to use.

    a is a whole number of the sum's steps. With a `unit`, of which all z are whole multiples, z is
    too, where all records' rounding by half a step could be seen beside the noise; the weight is
    then up to a step below a.
    """
    clip, G = float(np.sqrt(a * a + 1.0)), groups.size
    part = exactly(GramSum(2 * G, clip, rho, facts.schema.unit.max_rows, groups=G), a)
    whole = part if unit is None else noisy_sum.unrounded(part, unit, facts.n)
    return (part, a) if whole is part else (whole, floor(a / granule(whole)) * granule(whole))


def unit_of(span: ClipRange, *columns: Column) -> float | None:
    """The largest number of which every z of these columns is a whole multiple; None unless their
    values and the ends of the range are whole numbers."""
    ends = (span.lower, span.upper)
    if not all(c.kind.is_whole for c in columns) or any(end != floor(end) for end in ends):
        return None
    return (1 if sum(ends) % 2 else 2) / (span.upper - span.lower)


def moments_ms(n: int, groups: int) -> int:
    """The planned time of a GroupMomentsMap and its Gram sum over n records, in ms."""
    return ceil(n * _RECORD_NANOSECONDS / 10**6) + _GROUP_MS * groups


def mean_noise(part: GramSum, a: float, tilt: float) -> float:
    """The standard deviation of the noise of a group's S − mN at m = tilt."""
    return float(noisy_sum.noise_sd(part) * np.sqrt(tilt**2 / a**4 + 1 / (2 * a**2)))


def weight(tilt: float) -> float:
    """a for the least noise of S − mN at the mean m = tilt: R⁴(m²/a⁴ + 1/(2a²))."""
    t = _WEIGHTS
    noise = (t + 1) ** 2 * (tilt**2 / t**2 + 1 / (2 * t))
    return float(np.sqrt(t[np.argmin(noise)]))


def groups_of(facts: DatasetFacts, name: str, chosen: tuple[str, ...] | None = None) -> Groups:
    """The declared groups of a column, or those of them that are chosen. Raises InvalidQuery."""
    column = declared(facts, name)
    if not column.kind.is_whole:
        raise InvalidQuery(
            f"{name} has no levels to compare: name a categorical, boolean or integer column."
        )
    axis = level_axis(column)
    levels = axis.levels if chosen is None else chosen
    if not set(levels) <= set(axis.levels):
        raise InvalidQuery(
            "levels must be levels that are declared for the group's column, and that where does "
            "not exclude."
        )
    if len(set(levels)) < LEAST_COMPARED:
        left = f" where leaves one of {column.name}." if column.excluded else ""
        raise InvalidQuery(f"A comparison needs two or more different groups.{left}")
    if (axis.size if chosen is None else len(levels)) > MAX_GROUPS:
        raise InvalidQuery(f"{name} has more than {MAX_GROUPS} levels, the most that are compared.")
    codes = tuple(axis.stored[axis.levels.index(level)] for level in levels)
    return Groups(name, codes, tuple(levels))


def two_groups(facts: DatasetFacts, name: str, chosen: tuple[str, ...] | None) -> Groups:
    """As groups_of, exactly two of them. Raises InvalidQuery."""
    groups = groups_of(facts, name, chosen)
    if groups.size != 2:
        raise InvalidQuery(
            f"Two levels are compared, and {name} has {groups.size}: choose two, or another column."
        )
    return groups


def compared(column: Column, groups: Groups) -> Groups:
    """The groups, of another column than the one that is compared. Raises InvalidQuery."""
    if column.name == groups.column:
        raise InvalidQuery(f"{column.name} is compared by its own levels: name another column.")
    return groups


def names_of(*columns: Column | str | None) -> tuple[str, ...]:
    """The names that are given, in order, each once."""
    names = (c.name if isinstance(c, Column) else c for c in columns if c is not None)
    return tuple(dict.fromkeys(names))
