# SPDX-License-Identifier: Apache-2.0
"""The table of follow-up: events and numbers at risk on a fine public grid, as a step of a hazard
regression, and the baseline that a fit takes from it.
"""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from reticent_server.domain.steps import FloatArray, Part, Released, RunningCounts, SumStep
from reticent_server.kinds.hazard_regression.partial_score import FollowUpColumns, PersonCellsMap
from reticent_server.kinds.hazard_regression.public_persons import RiskTable
from reticent_server.kinds.hazard_regression.strata import one_after_the_other
from reticent_server.kinds.shared.follow_up.question import FollowUp
from reticent_server.kinds.shared.follow_up.table import LifeTable, life_table
from reticent_server.mechanisms import running_counts
from reticent_server.numerics.running_factor import FACTOR_BITS, running_factor

_UNLIKE_RISK = 0.15  # relative error of the hazard that public persons lead to expect
_MOST_CORRECTED = 4.0  # times: what a hazard is corrected by
_LEAST_OF_NOISE = 0.25
"""Of the noise of an interval's events, that they are at least. With 1 late intervals in which
nobody has the event had more of it than their noise on average, and means at risk are the farthest
off there: coefficients of melanoma at epsilon = 1 were 1 to 2 of Cox's standard errors off.
"""
_TINY = 1e-12  # of what is divided by


@dataclass(frozen=True, slots=True, eq=False)
class RiskBaseline:
    """The table, with the relative error (J,) of a hazard between two reported cuts. noise: of a
    stratum's events, over the mean number in one. unsure: the squared number of events that hazards
    are off by, beside the persons' own error."""

    table: RiskTable
    errors: FloatArray
    noise: float
    unsure: float = 0.0

    def corrected(self, cuts: tuple[float, ...], rest: Released) -> "RiskBaseline":
        """With hazards that are moved towards what was seen in each interval, by precision: those
        that public persons lead to expect are known to _UNLIKE_RISK and the table's noise. cuts:
        (GJ,) the reported ones; rest: events less cumulative hazards between them.
        """
        table = self.table
        position = np.minimum(np.searchsorted(np.asarray(cuts), table.ends), len(cuts) - 1)
        events = np.zeros(len(cuts))
        np.add.at(events, position, table.events)
        persons = 1 / np.maximum(events, 1.0)
        before = _UNLIKE_RISK**2 + np.maximum(self.errors**2 - persons, 0.0)
        noise = (rest.sd / np.maximum(events, 1.0)) ** 2
        gain = before / (before + noise)
        ratio = np.clip(
            1 + rest.values / np.maximum(events, 1.0), 1 / _MOST_CORRECTED, _MOST_CORRECTED
        )
        left = (1 - gain) * before
        errors, unsure = np.sqrt(persons + left), float(left @ events**2)
        moved = replace(table, correction=table.correction * (ratio**gain)[position])
        return replace(self, table=moved, errors=errors, unsure=unsure)


@dataclass(frozen=True, slots=True, eq=False)
class RiskTableStep:
    """How it is released. fine: the follow-up on the whole grid, columns: the same with its start;
    cuts: (J,) those that are reported, of each stratum; rho, entries: of the table, and of when
    persons come (RHO_UNITS); unit_rows: m.
    """

    fine: FollowUp
    columns: FollowUpColumns
    cuts: tuple[float, ...]
    rho: int
    entries: int
    unit_rows: int

    @property
    def axis_cuts(self) -> tuple[float, ...]:
        """(GJ,) the reported cuts on the axis of all strata."""
        return tuple(one_after_the_other(np.asarray(self.cuts), self.fine.size).tolist())

    def step(self) -> SumStep:
        """One cell a record, and another where it has a start."""
        m, J = self.unit_rows, self.fine.intervals
        parts: tuple[Part, ...] = (self.fine.part(self.rho, m),)
        if self.columns.start is not None:
            parts = (*parts, RunningCounts(self.fine.size, J + 1, self.entries, m))
        return SumStep("follow-up", parts, PersonCellsMap(self.fine, self.columns))

    def expected_noise(self, events: float) -> float:
        """Of a stratum's events, over the mean number in one, where so many are expected of all."""
        part = self.fine.part(self.rho, self.unit_rows)
        blank = Released(np.zeros(part.lines * part.length), running_counts.noise_sd(part))
        noise = _noise_of_events(self.fine, life_table(self.fine, blank, 0))
        return noise * self.fine.size / max(events, 1.0)

    def baseline(self, released: tuple[Released, ...], count: float) -> RiskBaseline:
        """The baseline of `count` records: what is at risk less who has not come, where persons
        come late."""
        table = life_table(self.fine, released[0], round(count))
        if self.columns.start is None:
            return risk_table(self.fine, self.cuts, table, table.at_risk)
        not_yet = _not_yet(released[1], self.fine)
        found = risk_table(self.fine, self.cuts, table, table.at_risk - not_yet)
        coming = _coming(table.at_risk, not_yet)
        return replace(found, table=replace(found.table, entering=coming))


def _not_yet(released: Released, fine: FollowUp) -> FloatArray:
    """(G, J) persons whose follow-up has not begun by the middle of each interval. released: the
    lines of entries, the latest first."""
    J = fine.intervals
    exact = running_factor(J + 1) / (1 << FACTOR_BITS)
    root = np.tri(J + 1) @ np.linalg.inv(exact)
    lines = released.values.reshape(fine.size, J + 1)
    return np.asarray((lines @ root.T)[:, :-1][:, ::-1])


def _coming(persons: FloatArray, not_yet: FloatArray) -> FloatArray:
    """(GJ,) persons whose follow-up begins in each interval, up to its middle: what noise makes
    negative is 0. persons, not_yet: (G, J) who have not left, or not come, by then."""
    before = np.column_stack([np.maximum(persons.max(axis=1), not_yet.max(axis=1)), not_yet])
    coming = np.maximum(-np.diff(before, axis=1), 0.0)
    coming[:, 0] = np.maximum(coming[:, 0], 1.0)
    return np.asarray(coming.ravel())


def risk_table(
    fine: FollowUp, cuts: tuple[float, ...], table: LifeTable, at_risk: FloatArray
) -> RiskBaseline:
    """Numbers that are not below 0, and the relative error of hazards between the cuts: of events,
    persons and noise. at_risk: (G, K).
    """
    found = [_stratum_table(fine, cuts, table, g) for g in range(fine.size)]
    smooth, errors = (np.concatenate(x) for x in zip(*found, strict=True))
    ends = one_after_the_other(np.asarray(fine.cuts), fine.size)
    known = np.maximum(at_risk.ravel(), 1.0)
    risk = RiskTable(ends, smooth, known, np.ones(len(ends)), fine.size)
    noise = _noise_of_events(fine, table) * fine.size / float(np.sum(smooth))
    return RiskBaseline(risk, errors, noise)


def _noise_of_events(fine: FollowUp, table: LifeTable) -> float:
    """The sd of the number of a stratum's events."""
    every = np.zeros((1, 2, fine.intervals + 1))
    every[0, 0, : fine.intervals] = 1.0
    return sqrt(max(float(table.noise(every)[0, 0]), 0.0))


def _stratum_table(
    fine: FollowUp, cuts: tuple[float, ...], table: LifeTable, g: int
) -> tuple[FloatArray, FloatArray]:
    """Events (K,) and the errors (J,) of hazards of stratum g. No more events together than were
    released: what intervals are raised by would be information that nobody has (twice as many
    events of nafld by sex at epsilon = 1, four times as many of nwtco by stage).
    """
    J, K = len(cuts), fine.intervals
    position = np.searchsorted(np.asarray(cuts), np.asarray(fine.cuts), side="left")
    position = np.minimum(position, J - 1)
    gradient = np.zeros((J, 2, K + 1))
    gradient[position, 0, np.arange(K)] = 1.0
    events = np.zeros(J)
    np.add.at(events, position, table.events[g])
    noise = np.maximum(np.diag(table.noise(gradient)), 0.0)
    least = np.maximum(events, _LEAST_OF_NOISE * np.sqrt(noise) + 1.0)
    errors = np.sqrt(least + noise) / least
    calmed = _calmed(table.events[g], position, least)
    whole = max(float(np.sum(table.events[g])), _noise_of_events(fine, table), 1.0)
    return calmed * min(1.0, whole / float(np.sum(calmed))), errors


def _calmed(events: FloatArray, position: np.ndarray, least: FloatArray) -> FloatArray:
    """(K,) not below 0, with the sums `least` (J,) of the reported intervals."""
    raised = np.maximum(events, 0.0)
    sums = np.zeros(len(least))
    np.add.at(sums, position, raised)
    known = sums > _TINY
    scale = least / np.where(known, sums, 1.0)
    even = least[position] / len(events)
    return np.asarray(np.where(known[position], raised * scale[position], even))
