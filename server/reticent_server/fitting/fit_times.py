# SPDX-License-Identifier: Apache-2.0
"""How long a planned fit takes, from public facts: its passes, what a record takes in one, and what
is done between two.

Measured with two threads, of q = 2 to 61 terms and 10⁴ to 10⁶ records; what is planned is a third
above.
"""

from dataclasses import dataclass

from reticent_server.domain.plan import DRAWING
from reticent_server.domain.steps import SELECTION_NANOSECONDS
from reticent_server.fitting.budget import FitBudget

_STEP_MS = (2.0, 0.009)  # between two passes: of itself, and of a squared coefficient
_HARD_STEP_MS = (8.0, 0.026)  # the same where a score is a function without a closed form
_HARD_NANOSECONDS = 100  # of a score, from which it is one
_ROW_NANOSECONDS, _TERM_NANOSECONDS = 13, 3.3  # of a record in a pass, and of its term
_UNSTEADY_NANOSECONDS = 400  # of a score, from which its time depends on its argument
_TAKEN_NANOSECONDS = 2.5  # of a cell, where early passes go over rows that are taken out once
_SCORE_TAKEN = 0.05  # of a score's planned time, which covers the slowest records: measured .02
_MADE_NANOSECONDS = 20  # of a cell made of a person's rows, in one pass: measured 7
_PRODUCTS_A_MS = 25  # squared coefficients of which a step takes 1 ms; measured: 50 to 150


@dataclass(frozen=True, slots=True)
class FitTimes:
    """budget: of the steps. size: q. score: planned nanoseconds of a record's. made: columns made
    of a person's rows. draws: of an own profile that is released first; None: none is."""

    budget: FitBudget
    size: int
    score: int
    made: int = 0
    draws: int | None = None

    @property
    def steady(self) -> bool:
        """Whether no score's time depends on its argument."""
        return self.score < _UNSTEADY_NANOSECONDS

    @property
    def passes(self) -> int:
        """Over the table."""
        budget = self.budget
        fit = len(budget.rounds) + budget.steps + budget.scale_steps
        lengths = (budget.lengths > 0) + (budget.tail > 0)
        return fit + (self.draws is not None) + lengths

    def column_ms(self, n: int) -> int:
        """Planned time beyond that of sums: the draws of an own profile's quantiles, the filter's
        steps, and what a record's score takes, with the columns that are made of a person's
        rows."""
        scores = n * self.passes * (self.score + self.made * _MADE_NANOSECONDS)
        steps = self.passes * self.size**2 // _PRODUCTS_A_MS
        return ((self.draws or 0) * SELECTION_NANOSECONDS + scores) // 10**6 + steps

    def expected_ms(self, n: int, columns: int) -> float:
        """Passes over the table's columns, the filter's steps between them, and an own profile's
        draws."""
        stride, parts = self.budget.stride, self.budget.part_passes
        rows = (self.passes - parts + parts / stride) * n * self._row_nanoseconds / 10**6
        taken = _TAKEN_NANOSECONDS * n * columns / 10**6 if parts else 0.0
        drawn = DRAWING * (self.draws or 0) * SELECTION_NANOSECONDS / 10**6
        return self.passes * self._between_ms + rows + taken + drawn

    def pass_ms(self, n: int) -> float:
        """What one more pass over all rows adds to expected_ms."""
        return self._between_ms + n * self._row_nanoseconds / 10**6

    @property
    def _between_ms(self) -> float:
        fixed, squared = _HARD_STEP_MS if self.score >= _HARD_NANOSECONDS else _STEP_MS
        return fixed + squared * self.size**2

    @property
    def _row_nanoseconds(self) -> float:
        return _ROW_NANOSECONDS + self.size * _TERM_NANOSECONDS + _SCORE_TAKEN * self.score
