# SPDX-License-Identifier: Apache-2.0
"""Public persons: what a hazard regression expects of the records before it measures, from public
rows and a released table of follow-up.

With K intervals, e_k events and r_k persons at risk in each (released), regressors u_i of public
rows and S_ik = exp(−e^{η_i} Λ_{k−1}) the share of row i that has had no event before, censoring is
taken as independent of the regressors, so that rows at risk weigh S_ik, and

    λ_k = e_k/(r_k m_k),   m_k = Σ_i S_ik e^{η_i}/Σ_i S_ik,
    ū_k = Σ_i S_ik e^{η_i} u_i/Σ_i S_ik e^{η_i}

is Breslow's estimate with the public rows' mean of the hazards at risk, and V_k the variance in
ū_k's place: the information is Σ_k e_k V_k. Where censoring goes with regressors, λ_k and ū_k are
off; the score is off by the product (partial_score). What λ_k is off by in the reported intervals
is released once and corrected.

Where persons come late, a row has a weight S_ik of those who came before: those who were at risk in
the interval before, had no event and were not censored, and a share, alike for all rows, of those
who come (released by interval).

One follow-up of each row, its event and its censoring drawn by public randomness, tells how long
scores and roots are.

Source: Breslow (1974), Biometrics 30.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.curvature import LocalRows
from reticent_server.fitting.public.coordinates import clipped_moment, second_moment
from reticent_server.fitting.public.model import PublicModel
from reticent_server.fitting.score import Score
from reticent_server.fitting.whole_scores import UNBOUNDED
from reticent_server.kinds.hazard_regression.partial_score import (
    Followed,
    KnownBaseline,
    PartialScore,
    binned_scores,
)
from reticent_server.kinds.hazard_regression.strata import strata_of_rows
from reticent_server.numerics.matrices import power
from reticent_server.numerics.public_random import public_generator

_LEAST_AT_RISK = 1.0  # of a released number at risk that is divided by: one person
_FARTHEST = 8.0  # |η| at the most, as of a person's score
_TINY = 1e-12  # of what is divided by
_SMALLEST = 1e-9  # relative eigenvalue of a moment that is inverted: smaller ones are rounding
_LARGEST = 0.7  # of an interval's hazard: half of those at risk have the event


@dataclass(frozen=True, eq=False)
class RiskTable:
    """ends: (K,) of the intervals. events, at_risk: (K,) numbers in them, at least 0. correction:
    (K,) by what hazards are multiplied. strata: G, of K/G intervals each, one after the other.
    entering: (K,) whose follow-up begins in each, None: all at 0."""

    ends: FloatArray
    events: FloatArray
    at_risk: FloatArray
    correction: FloatArray
    strata: int = 1
    entering: FloatArray | None = None

    @property
    def each(self) -> int:
        """The number of a stratum's intervals."""
        return len(self.ends) // self.strata

    @cached_property
    def last(self) -> NDArray[np.int64]:
        """(G,) where the strata's last intervals stand."""
        return np.arange(1, self.strata + 1) * self.each - 1

    @property
    def shares(self) -> FloatArray:
        """(G,) of the persons, by stratum."""
        entering = self.at_risk.reshape(self.strata, -1).max(axis=1)
        if self.entering is not None:
            entering = self.entering.reshape(self.strata, -1).sum(axis=1)
        return np.asarray(entering / entering.sum())

    @cached_property
    def censoring(self) -> FloatArray:
        """(K,) the share of those at risk who leave in each interval without the event."""
        later = np.append(self.at_risk[1:], 0.0)
        if self.entering is not None:
            later = later - np.append(self.entering[1:], 0.0)
        later[self.last] = 0.0
        left = self.at_risk - self.events - later
        return np.asarray(np.clip(left / np.maximum(self.at_risk, _LEAST_AT_RISK), 0.0, 1.0))

    def begun(self, rows: int, g: int) -> FloatArray:
        """(rows,) of the persons of stratum g, at risk from its first interval on."""
        first = 1.0 if self.entering is None else float(self.entering[g * self.each])
        return np.full(rows, first)

    def kept(self, at: int, left: FloatArray, spent: FloatArray) -> FloatArray:
        """(rows,) at risk after interval `at`: of left (rows,) before it those who had no event,
        at cumulative hazards spent (rows,), and, where persons come late, were not censored, with
        those who come.
        """
        staying: FloatArray = left * np.exp(-spent)
        if self.entering is None or at in self.last:
            return staying
        return np.asarray(staying * (1 - self.censoring[at]) + self.entering[at + 1])


@dataclass(frozen=True, slots=True, eq=False)
class StratumAtRisk:
    """What is at risk in one stratum: public rows U (rows, k), what they weigh in each interval (K,
    rows), which adds up to `kept` (K,), and the events (K,) there."""

    U: FloatArray
    shares: FloatArray
    kept: FloatArray
    means: FloatArray
    events: FloatArray

    @property
    def information(self) -> FloatArray:
        """(k, k) of all intervals, by one product."""
        weights = self.events @ self.shares
        about = self.means * np.sqrt(self.events * self.kept)[:, None]
        return np.asarray((self.U * weights[:, None]).T @ self.U - about.T @ about)

    @property
    def each(self) -> FloatArray:
        """(K, k, k) of each interval."""
        found = np.zeros((*self.means.shape, self.U.shape[1]))
        for j in np.flatnonzero(self.events > 0):
            mean = self.means[j]
            V = (self.U * self.shares[j][:, None]).T @ self.U - self.kept[j] * np.outer(mean, mean)
            found[j] = self.events[j] * V
        return found


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedRisk:
    """At a place: hazards (K,) of u = 0, means (K, k) of u, and the mean information of a record
    (k, k), in all and in each interval (K, k, k).
    """

    hazards: FloatArray
    means: FloatArray
    strata: tuple[StratumAtRisk, ...]
    count: float

    @property
    def information(self) -> FloatArray:
        """(k, k) the mean information of a record."""
        return np.asarray(sum(each.information for each in self.strata) / self.count)

    @property
    def each(self) -> FloatArray:
        """(K, k, k) the same in each interval of time."""
        return np.concatenate([each.each for each in self.strata]) / self.count


def expected(
    table: RiskTable,
    U: FloatArray,
    eta: FloatArray,
    count: float,
    far: FloatArray | float = 1.0,
) -> ExpectedRisk:
    """What is expected of public rows U (rows, k) with predictors (rows,), in `count` records. far:
    (rows,) what they weigh."""
    strata = strata_of_rows(len(U), table.shares)
    far = np.broadcast_to(far, (len(U),))
    found = [
        _in_stratum(table, g, U[strata == g], eta[strata == g], far[strata == g])
        for g in range(table.strata)
    ]
    hazards = np.concatenate([hazard for hazard, _ in found])
    at_risk = tuple(each for _, each in found)
    return ExpectedRisk(hazards, np.concatenate([each.means for each in at_risk]), at_risk, count)


def _in_stratum(
    table: RiskTable, g: int, U: FloatArray, eta: FloatArray, far: FloatArray
) -> tuple[FloatArray, StratumAtRisk]:
    """Hazards (K/G,) of stratum g, and who is at risk there."""
    rate = np.exp(np.clip(eta, -_FARTHEST, _FARTHEST))
    K, begin = table.each, g * table.each
    hazards, shares = np.zeros(K), np.zeros((K, len(U)))
    left = table.begun(len(U), g)
    for j in range(K):
        at = begin + j
        weights = left * rate
        at_risk = max(float(table.at_risk[at]), _LEAST_AT_RISK)
        mean = float(np.mean(weights) / max(float(np.mean(left)), _TINY))
        hazard = float(table.events[at]) / (at_risk * max(mean, _TINY))
        hazards[j] = min(hazard * float(table.correction[at]), _LARGEST / max(mean, 1e-9))
        shares[j] = weights * far / max(float(np.sum(weights)), _TINY)
        left = table.kept(at, left, hazards[j] * rate)
    kept = np.maximum(shares.sum(axis=1), _TINY)
    events = np.maximum(np.asarray(table.events[begin : begin + K], dtype=np.float64), 0.0)
    return hazards, StratumAtRisk(U, shares, kept, shares @ U / kept[:, None], events)


@dataclass(frozen=True, slots=True, eq=False)
class PublicPersons:
    """Scores and roots (rows, k) of the public rows, one follow-up of each; the cumulative hazards
    (rows,); and the follow-up, which on the axis of all strata begins at `begins` (rows,).
    """

    scores: FloatArray
    roots: FloatArray
    spent: FloatArray
    persons: Followed
    begins: FloatArray


def public_persons(
    table: RiskTable,
    known: KnownBaseline,
    U: FloatArray,
    eta: FloatArray,
    far: FloatArray | float = 1.0,
) -> PublicPersons:
    """known: with means in the coordinates of U (rows, k)."""
    rng = public_generator("public persons", "follow-up", "0")
    n, (nodes, cumulative) = len(U), (known.nodes, known.cumulative)
    rate = np.exp(np.clip(eta, -_FARTHEST, _FARTHEST))
    g, until = strata_of_rows(n, table.shares), float(table.ends[table.each - 1])
    begin = np.asarray(g * until, dtype=np.float64)
    end = begin + until
    start = begin if table.entering is None else _coming(table, table.entering, g)
    begun = np.interp(start, nodes, cumulative)
    dies = np.interp(begun + rng.exponential(size=n) / rate, cumulative, nodes, right=np.inf)
    leaves = _leaving(table, rng.random(n), g, start)
    time = np.minimum(np.minimum(dies, leaves), end)
    persons = Followed(start, time, ((dies <= leaves) & (dies <= end)).astype(np.float64))
    scores, roots = persons.residuals(known, U.T, np.eye(U.shape[1]), eta)
    spent = rate * (np.interp(time, nodes, cumulative) - begun)
    return PublicPersons((scores * far).T, (roots * np.sqrt(far)).T, spent, persons, begin)


def _coming(table: RiskTable, entering: FloatArray, g: NDArray[np.int64]) -> FloatArray:
    """(rows,) when follow-up of rows of the strata g (rows,) begins, by public randomness."""
    drawn = public_generator("public persons", "entry", "0").random(len(g))
    found = np.empty(len(g))
    for stratum in range(table.strata):
        here = slice(stratum * table.each, (stratum + 1) * table.each)
        share = np.cumsum(entering[here] + _TINY)
        begins = np.append(stratum * table.ends[table.each - 1], table.ends[here][:-1])
        at = np.searchsorted(share / share[-1], drawn[g == stratum])
        found[g == stratum] = begins[np.minimum(at, table.each - 1)]
    return found


def _leaving(
    table: RiskTable, drawn: FloatArray, g: NDArray[np.int64], start: FloatArray
) -> FloatArray:
    """(rows,) when rows of the strata g (rows,), at risk from `start` (rows,), leave without the
    event, at uniform draws.
    """
    found = np.empty(len(drawn))
    censoring, K = table.censoring, table.each
    for stratum in range(table.strata):
        here = slice(stratum * K, (stratum + 1) * K)
        ends = table.ends[here]
        nodes = np.append(stratum * table.ends[K - 1], ends)
        kept = np.append(1.0, np.cumprod(1.0 - censoring[here]))
        inside = g == stratum
        left = 1.0 - drawn[inside] * np.interp(start[inside], nodes, kept)
        found[inside] = np.interp(left, 1.0 - kept, nodes, right=float(ends[-1]))
    return found


@dataclass(frozen=True, eq=False)
class PersonsModel(PublicModel):
    """The public rows as a model of persons. table: as released. place: (q,) θ in u that `persons`
    are at."""

    table: RiskTable | None = None
    count: float = 1.0
    stop: float = np.inf
    far: FloatArray | float = 1.0

    def curvature(self, score: Score, theta: FloatArray, C: FloatArray) -> FloatArray:  # noqa: ARG002 - one interface
        """J (k, k) of roots that count as long as the radius at most."""
        U, eta = self._weighed_rows, self.predictor(score, theta)
        J = self._expected(U, eta).information
        if self.radius_squared >= UNBOUNDED:
            return J
        roots = self.persons(theta, score).roots
        back, whole = power(J, 0.5, _SMALLEST), second_moment(roots)
        down = power(whole, -0.5, _SMALLEST)
        kept = down @ clipped_moment(roots, self.radius_squared) @ down
        return np.asarray(back @ kept @ back)

    @cached_property
    def _places(self) -> dict[bytes, ExpectedRisk]:
        """What was expected at the last place: it is asked for several times."""
        return {}

    def _expected(self, U: FloatArray, eta: FloatArray) -> ExpectedRisk:
        """Of the weighed rows U (rows, k) with predictors (rows,)."""
        key = eta.tobytes()
        if key not in self._places:
            self._places.clear()
            self._places[key] = expected(self.risk, U, eta, self.count, self.far)
        return self._places[key]

    @property
    def risk(self) -> RiskTable:
        """The table of follow-up. Raises TypeError without one."""
        if self.table is None:
            raise TypeError("persons have a table of follow-up")
        return self.table

    def persons(self, theta: FloatArray, score: Score) -> PublicPersons:
        """At θ (q,, in u)."""
        U, eta = self._weighed_rows, self.predictor(score, theta)
        return public_persons(self.risk, self._known(U, eta), U, eta, self.far)

    def _known(self, U: FloatArray, eta: FloatArray) -> KnownBaseline:
        """The baseline in u that is expected of rows U (rows, k) with predictors (rows,)."""
        found = self._expected(U, eta)
        return KnownBaseline(self.risk.ends, found.hazards, found.means, self.stop)

    def binned(self, theta: FloatArray, score: Score, ends: FloatArray) -> FloatArray:
        """(B, k, rows) scores at θ by bins of time that end at `ends` (B,)."""
        U, eta = self._weighed_rows, self.predictor(score, theta)
        known, found = self._known(U, eta), self.persons(theta, score)
        pieces = binned_scores(
            found.persons, known, U.T, np.eye(U.shape[1]), eta, found.begins, ends
        )
        return pieces * self.far

    def shares(self, theta: FloatArray, ends: FloatArray) -> FloatArray:
        """(B, k, k) of the mean information at θ, by bins of time that end at `ends` (B,)."""
        U, table = self._weighed_rows, self.risk
        each = self._expected(U, U @ theta + self.offset).each
        within = np.tile(np.searchsorted(ends, table.ends[: table.each]), table.strata)
        return np.stack([each[within == b].sum(axis=0) for b in range(len(ends))])

    def score_at(self, theta: FloatArray) -> PartialScore:
        """The score at θ (q,, in u), with the baseline that is expected there."""
        W, U = self.whitening.transform, self._weighed_rows
        eta = U @ theta + self.offset
        found = self._expected(U, eta)
        known = KnownBaseline(self.risk.ends, found.hazards, found.means, self.stop)
        lengths = np.linalg.norm(public_persons(self.risk, known, U, eta, self.far).scores, axis=1)
        inside = replace(
            known, means=np.asarray(np.linalg.solve(W, found.means.T).T, dtype=np.float64)
        )
        even = np.full(len(lengths), 1 / len(lengths))
        weighed = np.ndim(self.far) > 0
        return PartialScore(1.0, known=inside, lengths=lengths, weights=even, weighed=weighed)

    def local(self, score: Score, theta: FloatArray) -> LocalRows:
        """Public persons about θ: regressors less the means while at risk, and cumulative
        hazards.
        """
        persons = self.persons(theta, score)
        spent = np.maximum(persons.spent, _TINY)
        X = persons.roots / np.sqrt(spent)[:, None]
        return LocalRows(X, self.predictor(score, theta), np.ones(len(X)), persons.spent)

    def weight_of_events(self, theta: FloatArray, L: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(Σ c, Σ c²), each (p,), over the expected events: c = (L(u − ū))² of an event, L (p,
        k)."""
        U, table = self._weighed_rows, self.risk
        eta = U @ theta + self.offset
        found = expected(table, U, eta, self.count, self.far)
        rate, moved = np.exp(np.clip(eta, -_FARTHEST, _FARTHEST)), U @ L.T
        strata, each = strata_of_rows(len(U), table.shares), table.each
        first, second, left = np.zeros(len(L)), np.zeros(len(L)), rate
        rows = zip(table.events, found.hazards, found.means, strict=True)
        for j, (events, hazard, mean) in enumerate(rows):
            if j % each == 0:
                left = table.begun(len(U), j // each)
            weights = rate * left * (strata == j // each)
            share = weights / max(float(np.sum(weights)), _TINY)
            c = (moved - L @ mean) ** 2
            first += events * (share @ c)
            second += events * (share @ c**2)
            left = table.kept(j, left, hazard * rate)
        return first, second
