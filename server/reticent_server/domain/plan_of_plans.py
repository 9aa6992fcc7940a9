# SPDX-License-Identifier: Apache-2.0
"""Plans that are made of others: what they do not say themselves is what the others say."""

from abc import abstractmethod
from collections.abc import Sequence

from reticent_server.domain.plan import Planned
from reticent_server.domain.steps import CountSum


class PlannedOn(Planned):
    """Another plan, and something more. base: the other."""

    __slots__ = ()

    @property
    @abstractmethod
    def base(self) -> Planned: ...

    @property
    def columns(self) -> tuple[str, ...]:
        return self.base.columns

    @property
    def rho(self) -> int:
        return self.base.rho

    @property
    def mechanism(self) -> str:
        return self.base.mechanism

    @property
    def reference(self) -> str:
        return self.base.reference

    @property
    def answers(self) -> str:
        return self.base.answers

    @property
    def passes(self) -> int:
        return self.base.passes

    @property
    def column_ms(self) -> int:
        return self.base.column_ms

    @property
    def steady(self) -> bool:
        return self.base.steady

    @property
    def of_persons(self) -> bool:
        return self.base.of_persons

    @property
    def gaussian_counts(self) -> tuple[CountSum, ...] | None:
        return self.base.gaussian_counts


class PlannedInTurn(PlannedOn):
    """Several plans about the same columns, one after the other. each: of them, one at least."""

    __slots__ = ()

    @property
    @abstractmethod
    def each(self) -> Sequence[Planned]: ...

    @property
    def base(self) -> Planned:
        """What all have in common stands in the first."""
        return self.each[0]

    @property
    def rho(self) -> int:
        return sum(plan.rho for plan in self.each)

    @property
    def passes(self) -> int:
        return sum(plan.passes for plan in self.each)

    @property
    def column_ms(self) -> int:
        return sum(plan.column_ms for plan in self.each)

    @property
    def gaussian_counts(self) -> tuple[CountSum, ...] | None:
        every = [plan.gaussian_counts for plan in self.each]
        known = [counts for counts in every if counts is not None]
        return sum(known, start=()) if len(known) == len(every) else None
