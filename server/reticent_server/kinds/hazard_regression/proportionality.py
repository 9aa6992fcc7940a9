# SPDX-License-Identifier: Apache-2.0
"""Whether hazards are proportional: scores by bins of time at the fit's coefficients, released
once.

With B bins of time that end at public times (of released numbers of events, about as many in each),
the score of a person (partial_score) is the sum of B pieces, ∫ over a bin of (u − ū) dM. The record
contributes all of them as one vector,

    bins    (s_1, …, s_B) ∈ R^{Bk}    VectorSum  Δ = 2C m,  cut at C as a whole by the sum

*Privacy.* The vector is a function of the record and of released values, whatever these are; the
sum scales it down to C and then adds it (mechanisms.quantise), so that a replaced record moves the
sum by 2C at most: unconditional, for every table. C comes from the release of the scores' lengths.
A record that is in another bin moves two pieces, and both are of the vectors that are cut.

*What they say.* With the information I_b of a bin, a person's hazard ratio exp(β_b) in it and the
fit's β̂, Σ s_b ≈ I_b (β_b − β̂) (Grambsch & Therneau 1994: scaled Schoenfeld residuals, averaged),
so that

    β̂_b = β̂ + I_b⁻¹ Σ s_b,   V_b = I_b⁻¹ (Q_b + (σ² + a²) 1) I_b⁻¹

with Q_b the scores' second moment, σ² the noise, and a what the cut may take in any one direction
(fitting.row_tail). I_b and Q_b are the fit's, split over the bins as the public persons lead to
expect. The test is of the trend: with g_b the middle of the bin's events, as a share of all events,
the β̂_b are regressed on g_b with weights V_b⁻¹. A slope does not change where the same vector is
added to every β̂_b, so neither the error of β̂ nor that of its noise enters; under proportional
hazards it is normal about 0. Each term's slope over its error, and all slopes together, are
tested (of `cox.zph` with transform = "rank", the time axis is the same).

An interval of a β̂_b has _UNSURE of β̂_b − β̂ as an error more: I_b is not measured bin by bin.

Source: Grambsch & Therneau (1994), Biometrika 81; Schoenfeld (1982), Biometrika 69.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from reticent_server.domain.steps import Block, Contribution, FloatArray, Released, Scaled
from reticent_server.fitting.report import intervals, p_values
from reticent_server.fitting.results import OpenInterval
from reticent_server.fitting.trust import BoolArray
from reticent_server.kinds.hazard_regression.partial_score import PersonsMap
from reticent_server.kinds.hazard_regression.public_persons import RiskTable
from reticent_server.numerics.matrices import floored, power

MOST_BINS = 8  # of time: each has the noise of the whole score
_LEAST_SHARE = 0.02  # of a bin's part of the information, where even: what is divided by
_UNSURE = 0.2  # relative error of a bin's information, of public persons
_LEAST = 1e-6  # of a matrix's trace: an eigenvalue that is inverted
_TINY = 1e-12  # of what is divided by


@dataclass(frozen=True, slots=True, eq=False)
class BinnedScoresMap(PersonsMap):
    """Gives the scores by bin (Bk, rows), bin by bin. ends: (B,) of the bins."""

    ends: tuple[float, ...]

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        pieces = self.binned(block, np.asarray(self.ends))
        B, k, rows = pieces.shape
        return (Scaled(pieces.reshape(B * k, rows), np.ones(rows)),)


def time_bins(table: RiskTable, bins: int) -> FloatArray:
    """(B,) ends of bins of time among the table's, with about as many events in each; fewer where
    one interval has more than a bin's.
    """
    events = table.events.reshape(table.strata, table.each).sum(axis=0)
    running = np.cumsum(events) / max(float(events.sum()), _TINY)
    at = np.searchsorted(running, np.arange(1, bins) / bins)
    inner = table.ends[np.unique(np.minimum(at, table.each - 1))]
    last = table.ends[table.each - 1]
    return np.append(inner[inner < last], last)


def bin_events(table: RiskTable, ends: FloatArray) -> FloatArray:
    """(B,) events in each bin, as the table has them."""
    within = np.tile(np.searchsorted(ends, table.ends[: table.each]), table.strata)
    return np.bincount(within, table.events, len(ends)).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class BinnedSlopes:
    """In the fit's coordinates: ends (B,), events (B,); moved (B, k): β̂_b − β̂, with covariance
    (B, k, k) of persons, noise and what the cut takes, and noise (B, k, k), without persons.
    """

    ends: FloatArray
    events: FloatArray
    moved: FloatArray
    covariance: FloatArray
    noise: FloatArray

    @property
    def middles(self) -> FloatArray:
        """(B,) g: the middles of the bins' events, from 0 to 1."""
        upto = np.cumsum(self.events)
        return np.asarray((upto - self.events / 2) / max(float(upto[-1]), _TINY))

    @property
    def trend(self) -> tuple[FloatArray, FloatArray]:
        """(k,) slopes along g, and their covariance (k, k)."""
        W = np.stack([_inverse(V) for V in self.covariance])
        g = self.middles[:, None, None]
        each = (W @ self.moved[:, :, None])[:, :, 0]
        mean = _inverse(W.sum(axis=0)) @ np.sum(g * W, axis=0)
        precision = np.sum(g**2 * W, axis=0) - np.sum(g * W, axis=0) @ mean
        V = _inverse(precision)
        told = np.sum(self.middles[:, None] * each, axis=0) - mean.T @ each.sum(axis=0)
        return V @ told, V


def binned_slopes(
    released: Released,
    bins: tuple[FloatArray, FloatArray],
    shares: FloatArray,
    moments: tuple[FloatArray, FloatArray],
    taken: float,
) -> BinnedSlopes:
    """From the scores by bin. bins: ends (B,), events (B,). shares: (B, k, k) of the information
    that public persons lead to expect; moments: I and Q (k, k), sums over the records; taken: a.
    """
    B, k = len(shares), shares.shape[-1]
    S = released.values.reshape(B, k)
    root = power(shares.sum(axis=0), -0.5, _TINY)
    even = [floored(root @ J @ root, _LEAST_SHARE / B) for J in shares]
    H, Q = (power(_sound(M), 0.5) for M in moments)
    A = np.linalg.inv(np.stack([H @ P @ H for P in even]))
    persons = np.stack([Q @ P @ Q for P in even])
    noise = A @ ((released.sd**2 + taken**2) * np.eye(k)) @ A
    moved = (A @ S[:, :, None])[:, :, 0]
    return BinnedSlopes(*bins, moved, A @ persons @ A + noise, noise)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBin:
    """A bin of time, which ends at `end`, with about so many events: the coefficients (k,) in it,
    with standard_errors of sampling and noise; intervals only of those that the fit tells.
    """

    end: float
    events: float
    terms: list[str]
    coefficients: list[float]
    standard_errors: list[float]
    privacy_standard_errors: list[float]
    confidence_intervals: list[OpenInterval]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proportionality:
    """The test of proportional hazards. trends: (k,) by how much coefficients change from the first
    event to the last, with p_values, null where the fit does not tell a coefficient; statistic, df,
    p_value: of all trends together.
    """

    terms: list[str]
    trends: list[float]
    standard_errors: list[float]
    p_values: list[float | None]
    statistic: float | None
    df: int
    p_value: float | None
    bins: list[TimeBin]


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """The terms of the fit: names (k,), and which of them it gives intervals of (k,)."""

    names: list[str]
    told: BoolArray


def proportionality(
    found: BinnedSlopes, T: FloatArray, coefficients: FloatArray, terms: Terms, level: float
) -> Proportionality:
    """In the units of the data, T (k, k) times those of the fit. coefficients: (k,) that it was
    made at.
    """
    told = terms.told
    moved = found.moved @ T.T
    variance, noise = (
        np.diagonal(T @ V @ T.T, axis1=1, axis2=2) for V in (found.covariance, found.noise)
    )
    values, errors = coefficients + moved, np.sqrt(variance + (_UNSURE * moved) ** 2)
    slope, V = found.trend
    trend, V = T @ slope, T @ V @ T.T
    sd = np.sqrt(np.diag(V))
    kept = np.flatnonzero(told)
    statistic = _wald(trend[kept], V[np.ix_(kept, kept)]) if len(kept) else None
    each = zip(found.ends, found.events, values, errors, np.sqrt(noise), strict=True)
    return Proportionality(
        terms=terms.names,
        trends=trend.tolist(),
        standard_errors=sd.tolist(),
        p_values=p_values(trend, sd, told),
        statistic=statistic,
        df=len(kept),
        p_value=None if statistic is None else float(chdtrc(len(kept), statistic)),
        bins=[
            TimeBin(
                end=float(end),
                events=float(events),
                terms=terms.names,
                coefficients=b.tolist(),
                standard_errors=se.tolist(),
                privacy_standard_errors=of_noise.tolist(),
                confidence_intervals=intervals(b, se, level, told),
            )
            for end, events, b, se, of_noise in each
        ],
    )


def _wald(trend: FloatArray, V: FloatArray) -> float:
    sd = np.sqrt(np.diag(V))
    z = trend / sd
    return float(z @ _inverse(V / np.outer(sd, sd)) @ z)


def _inverse(M: FloatArray) -> FloatArray:
    """(k, k) of a symmetric matrix (k, k), whatever noise has made of it."""
    return np.asarray(np.linalg.inv(_sound(M)))


def _sound(M: FloatArray) -> FloatArray:
    return floored(M, max(_LEAST * float(np.trace(M)), _TINY))
