# SPDX-License-Identifier: Apache-2.0
"""What a person or a row contributes to the means of cohorts by period, and what is read of it.

*Persons* (a panel). A person is in use with exactly one row in use in each of the T periods and one
date of treatment; z is the T-vector of responses less their own mean, which every difference
Y_t − Y_{g−1} is made of. With u = z/R cut to length 1 and c the cohort, the person contributes vvᵀ
of v = e_c ⊗ (1, u): the cohort's number, its sums by period, and its products of periods, from
which the covariance between a person's periods follows.

*Rows* (repeated cross-sections). The same with one group for each cohort and period, T = 1 and
z = y − centre.

A first step selects a quantile h_p of ‖z‖ among public lengths, p the highest of a few whose rank
is above the selection's noise at the public n; R = h_p χ_d(q)/χ_d(p), χ_d the quantile of the
length of d independent normal numbers (d = T − 1, or 1 for rows) and 1 − q the share of a normal
law beyond 4 standard deviations.

Privacy (unconditional; neighbours replace one unit with all of its rows). z, cohort and use of a
person are functions of the m places of that person alone, so that a person is one contribution,
whatever m is; a row is one record. Radius: mechanisms.quantile_tree. Sums: ‖v‖² ≤ 2 always, since
‖u‖ ≤ 1, and the Gram sum of e_c ⊗ v costs Δ = √2·‖v‖² = 2√2 for all cohorts together
(kinds.shared.groups has the proof: two contributions are positive semi-definite, and of different
cohorts orthogonal). A person who moves to another cohort, or out of use, is included. R is
post-processing of the first step; the two compose by zCDP.

Noise. With s the noise of a diagonal entry, a sum by period has s/√2, exactly what a sum of the
vectors alone would have at the whole of ρ; the number has s.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from reticent_server.domain.design import Design, Term
from reticent_server.domain.steps import (
    Block,
    Contribution,
    FloatArray,
    GramSum,
    Placed,
    Released,
)
from reticent_server.fitting.trust import clear
from reticent_server.fitting.trust.thresholds import LEAST_RECORDS
from reticent_server.kinds.staggered_did.effects import CohortCells
from reticent_server.mechanisms.quantise import exactly
from reticent_server.numerics.evaluate import evaluate_term, in_use
from reticent_server.numerics.level_places import level_places
from reticent_server.numerics.person_columns import person_sums

LENGTHS = 64
"""Of the public grid, one from which each is a factor 2^(1/3) below the next."""
_REACH = 6.334e-5  # of a normal law beyond 4 standard deviations, where least squares are cut
CLIP = sqrt(2.0)
"""‖(1, u)‖ at most."""
_OWN = 0.25
"""Of the standard deviation that a radius is made for, what a forecast takes as persons' own and
independent: growth that all share, serial correlation and tails leave .15 to .3 of it to
differences on three real panels.
"""


@dataclass(frozen=True, slots=True)
class CohortPanel:
    """What is read of a row. start: the column of the first treated period; never: its value for
    never, beside a missing cell. periods: first and last. dates: of the cohorts that are treated.
    rows: places of a person; None where the unit is a row. centre: of the response of a row."""

    design: Design
    response: Term
    time: str
    start: str
    never: float | None
    periods: tuple[int, int]
    dates: tuple[int, ...]
    rows: int | None
    centre: float = 0.0

    @property
    def T(self) -> int:  # noqa: N802 - the formula's name
        """The number of periods."""
        return self.periods[1] - self.periods[0] + 1

    @property
    def cohorts(self) -> int:
        """C, those never treated among them."""
        return 1 + len(self.dates)

    @property
    def starts(self) -> tuple[int, ...]:
        """(C,) places of first treated periods."""
        return (self.T, *(date - self.periods[0] for date in self.dates))

    @property
    def groups(self) -> int:
        """Of a Gram sum."""
        return self.cohorts if self.rows else self.cohorts * self.T

    @property
    def length(self) -> int:
        """Of u."""
        return self.T if self.rows else 1

    @property
    def reach(self) -> float:
        """R where responses are normal with a standard deviation of 1 within a person."""
        return sqrt(chdtri(max(1, self.length - 1), _REACH))

    def stretch(self, p: float) -> float:
        """R over the quantile of lengths at p."""
        return self.reach / sqrt(chdtri(max(1, self.length - 1), 1 - p))

    def values(self, block: Block) -> tuple[FloatArray, NDArray[np.int64]]:
        """z (length, units), and (units,) the group of each; −1: not in use."""
        y = evaluate_term(self.response, block)
        cohort, period = self._cohorts(block), block.columns[self.time] - self.periods[0]
        used = in_use(self.design, block) & np.isfinite(y) & (cohort >= 0)
        used &= (period >= 0) & (period < self.T)
        if self.rows is None:
            group = cohort * self.T + np.where(used, period, 0).astype(np.int64)
            return (y - self.centre)[None, :], np.where(used, group, -1)
        return self._persons(y, cohort, period, used, self.rows)

    def _persons(
        self,
        y: FloatArray,
        cohort: NDArray[np.int64],
        period: FloatArray,
        used: NDArray[np.bool_],
        m: int,
    ) -> tuple[FloatArray, NDArray[np.int64]]:
        here = used & (period == np.arange(self.T)[:, None])
        times = person_sums(here.astype(np.float64), m)
        z = person_sums(np.where(here, y, 0.0), m)
        z -= z.mean(axis=0)
        of_person = np.where(used, cohort, -1).reshape(-1, m)
        last = of_person.max(axis=1)
        same = np.where(used, cohort, last.repeat(m)).reshape(-1, m).min(axis=1) == last
        return z, np.where((times == 1).all(axis=0) & same, last, -1)

    def _cohorts(self, block: Block) -> NDArray[np.int64]:
        """(rows,) places of cohorts; −1: treated from the first period on, or no date at all."""
        date = block.columns[self.start]
        place = level_places(tuple(map(float, self.dates)), date)
        place = np.where(place >= 0, place + 1, np.where(date > self.periods[1], 0, -1))
        if self.never is not None:
            place = np.where(date == self.never, 0, place)
        missing = block.missing.get(self.start)
        return np.asarray(place if missing is None else np.where(missing, 0, place), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class LengthMap:
    """(units,) places of ‖z‖ among increasing lengths; −1: not in use."""

    panel: CohortPanel
    lengths: tuple[float, ...]

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            z, group = self.panel.values(block)
            length = np.sqrt((z * z).sum(axis=0))
        place = np.minimum(np.searchsorted(self.lengths, length), len(self.lengths) - 1)
        return (np.where((group >= 0) & np.isfinite(length), place, -1).astype(np.float64),)


@dataclass(frozen=True, slots=True)
class CohortCellMap:
    """e_c ⊗ (1, u)."""

    panel: CohortPanel
    radius: float

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            z, group = self.panel.values(block)
            z = np.where(group >= 0, z, 0.0)
            longest = np.maximum(np.sqrt((z * z).sum(axis=0)) / self.radius, 1.0)
            u = z / self.radius / longest
        return (Placed(np.vstack([np.ones((1, u.shape[1])), u]), group, self.panel.groups),)


def cell_part(panel: CohortPanel, rho: int, unit_rows: int) -> GramSum:
    """The Gram sum at `rho` (RHO_UNITS)."""
    size = (1 + panel.length) * panel.groups
    if panel.rows:
        part = GramSum(size, CLIP, rho, person_rows=panel.rows, groups=panel.groups)
    else:
        part = GramSum(size, CLIP, rho, unit_rows, groups=panel.groups)
    return exactly(part, 1.0)


def cells_of(panel: CohortPanel, released: Released, radius: float) -> CohortCells:
    """Means and numbers of cohorts by period in the units of the data, from the released Gram sum.

    The covariance of a person's periods within a cohort is mixed with that of all cohorts together,
    w own + (1 − w) pooled, w = v²/(v² + e²) with v the pooled variance of a period and e the noise
    of the own matrix; negative eigenvalues count as 0, so that intervals are rather too long.
    """
    G, k = panel.groups, 1 + panel.length
    blocks = released.values.reshape(k, G, k, G)[:, range(G), :, range(G)]  # (G, k, k)
    N, S, Q = blocks[:, 0, 0], blocks[:, 0, 1:], blocks[:, 1:, 1:]
    known = clear(N, released.sd) & (LEAST_RECORDS.value <= N)
    sizes = np.maximum(N, 1.0)
    m = np.clip(S / sizes[:, None], -1.0, 1.0)
    spread = _spread(Q - N[:, None, None] * m[:, :, None] * m[:, None, :], sizes, known, released)
    return _arranged(panel, sizes, m, spread, known, released.sd, radius)


def _spread(
    Q: FloatArray, N: FloatArray, known: NDArray[np.bool_], released: Released
) -> FloatArray:
    """(G, L, L) the covariance of u within groups, of centred products Q."""
    chosen = known if known.any() else np.ones_like(known)
    together = Q[chosen].sum(axis=0) / max(N[chosen].sum() - chosen.sum(), 1.0)
    L = Q.shape[-1]
    v, e = max(np.trace(together) / L, 0.0), released.sd / sqrt(2) * sqrt(L) / N
    w = (v**2 / np.maximum(v**2 + e**2, np.finfo(float).tiny))[:, None, None]
    mixed = w * Q / np.maximum(N - 1, 1.0)[:, None, None] + (1 - w) * together
    values, vectors = np.linalg.eigh(mixed)
    return np.asarray((vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.swapaxes(1, 2))


def _arranged(
    panel: CohortPanel,
    N: FloatArray,
    m: FloatArray,
    spread: FloatArray,
    known: NDArray[np.bool_],
    s: float,
    radius: float,
) -> CohortCells:
    """Cells (C, T) of groups (C, T) with one mean each, or of C groups with T."""
    C, T, L = panel.cohorts, panel.T, panel.length
    sampling, privacy = np.zeros((2, C, 2 * T, 2 * T))
    for place, (n, mean, own) in enumerate(zip(N, m, spread, strict=True)):
        c, first = (place, 0) if panel.rows else divmod(place, T)
        means, sizes = first + np.arange(L), T + first + np.arange(L)
        sampling[c][np.ix_(means, means)] = radius**2 * own / n
        sampling[c][np.ix_(sizes, sizes)] = n
        privacy[c][np.ix_([*means, *sizes], [*means, *sizes])] = _noise(n, mean, s, radius)
    return CohortCells(
        starts=panel.starts,
        means=panel.centre + radius * m.reshape(C, T),
        sizes=np.repeat(N[:, None], T, axis=1) if panel.rows else N.reshape(C, T),
        sampling=sampling,
        privacy=privacy,
        known=np.asarray(known.reshape(C, -1).all(axis=1)),
    )


def _noise(n: float, mean: FloatArray, s: float, radius: float) -> FloatArray:
    """(2L, 2L) of R(dS − m dN)/N and dN, the sums' noise dS having s/√2 and the number's s."""
    L = len(mean)
    of_means = radius * np.column_stack([-mean, np.eye(L)]) / n
    J = np.vstack([of_means, np.column_stack([np.ones(L), np.zeros((L, L))])])
    return np.asarray(J @ np.diag([s**2, *[s**2 / 2] * L]) @ J.T)


def expected_cells(
    panel: CohortPanel, sizes: Sequence[float], s: float, radius: float
) -> CohortCells:
    """Cells of cohorts of so many units, with the noise to come, and the sampling of what persons
    have of their own (_OWN), or of normal rows. Cohorts whose number is expected to be hidden are
    left out, unless all treated ones are.
    """
    N = np.asarray(sizes, dtype=np.float64)
    N = N if panel.rows else np.repeat(N / panel.T, panel.T)
    m, L = np.zeros((len(N), panel.length)), panel.length
    known = clear(N, s) & (LEAST_RECORDS.value <= N)
    if not known[len(N) // panel.cohorts :].any():
        known = np.ones_like(known)
    own = np.eye(L) / panel.reach**2
    if panel.rows:
        own = _OWN**2 * (own - own.mean())
    return _arranged(panel, np.maximum(N, 1.0), m, np.tile(own, (len(N), 1, 1)), known, s, radius)
