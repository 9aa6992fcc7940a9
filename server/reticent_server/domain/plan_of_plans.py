# SPDX-License-Identifier: Apache-2.0
"""Plans that are made of others: what they do not say themselves is what the others say."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from reticent_server.domain.plan import Outline, Planned
from reticent_server.domain.steps import CountSum


class PlannedOn(Planned):
    """Another plan, and something more. base: the other."""

    __slots__ = ()

    @property
    @abstractmethod
    def base(self) -> Planned:
        """The other plan, whose outline this one takes over."""

    @property
    def outline(self) -> Outline:
        return replace(self.base.outlined, parts=(), draws=0)  # what draws take is in column_ms


class PlannedInTurn(PlannedOn):
    """Several plans about the same columns, one after the other. each: of them, one at least."""

    __slots__ = ()

    @property
    @abstractmethod
    def each(self) -> Sequence[Planned]:
        """The plans in the order in which they run, one at least."""

    @property
    def base(self) -> Planned:
        """What all have in common stands in the first."""
        return self.each[0]

    @property
    def outline(self) -> Outline:
        return replace(
            self.base.outlined,
            rho=sum(plan.rho for plan in self.each),
            passes=sum(plan.passes for plan in self.each),
            column_ms=sum(plan.column_ms for plan in self.each),
            draws=0,
            gaussian_counts=self._counts,
            selections=sum((plan.selections for plan in self.each), start=()),
        )

    @property
    def _counts(self) -> tuple[CountSum, ...] | None:
        every = [plan.gaussian_counts for plan in self.each]
        known = [counts for counts in every if counts is not None]
        return sum(known, start=()) if len(known) == len(every) else None
