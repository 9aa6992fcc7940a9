# SPDX-License-Identifier: Apache-2.0
"""The values that carry a request through planning, charging, execution and storage."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, log10
from typing import Any, ClassVar, Protocol

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.persons import PersonView
from reticent_server.domain.precision import ForecastPrecision
from reticent_server.domain.query import Query
from reticent_server.domain.reservation import Reservation
from reticent_server.domain.steps import (
    SELECTION_NANOSECONDS,
    CountSum,
    Part,
    QuantileTree,
    Released,
    Step,
)

Recipe = Generator[Step, tuple[Released, ...], Any]

_TOO_DEAR = "a plan costs more than it was offered"
# of a cell: measured 100 for a cold read, and twice that for a busy machine
_COLD_NANOSECONDS = 200
DRAWING = 0.07  # of the planned time of an own profile's draws: measured .05
_PASS_NANOSECONDS = 30  # of a cell in one pass: measured 10
# of the noise of one of many counts, on the machine whose pace is 1: measured .017
_COUNT_MS = 0.02


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What is promised, in every reply."""

    tier: str
    unit: str
    epsilon: float
    delta: float
    mechanism: str
    statement: str
    reference: str
    assumptions: tuple[str, ...] = ()


class Forecastable(Protocol):
    """A planned fit that can say what its noise would be at another budget."""

    @property
    def rho(self) -> int:
        """The ρ that the fit is planned for, in RHO_UNITS."""

    @property
    def is_wide(self) -> bool:
        """Whether a forecast takes so long that a search makes do with a few."""
        ...

    def noise_ratio(self, rho: int) -> float:
        """The largest forecast ratio of a coefficient's privacy and sampling standard errors at
        `rho`.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """What a plan reads and what it costs: what each kind of plan says of itself.

    columns: what it reads. rho: the ρ of all of its parts together, in RHO_UNITS. mechanism,
    reference: as they stand in the reply's guarantee. parts: those that are known before the first
    release. passes: how often the engine goes over the table. column_ms: the planned time of what
    is not proportional to cells read. draws: the sub-cells that are drawn from one by one for an
    own profile's quantiles; they are in column_ms.

    steady: whether n and the plan alone decide how long it takes: a table that is made up then
    tells what any table of as many records takes. Not where it iterates on the records, or a
    function's time depends on its argument.

    assumptions: what the guarantee rests on; empty: it holds for every table. of_persons: whether
    sums are over persons, whose rows count together, where the unit has several rows.
    holds_for_persons: whether standard errors, intervals and p-values hold where the rows of one
    person are alike, as they do for sums over persons. A kind that says nothing of sampling sets
    it; one that takes rows as independent does not.

    gaussian_counts: where all parts are sums with Gaussian noise, or selections: those that are
    counts, whose noise is coarse; else None. Under accounts that add up (ε, δ) the plan then gets
    more ρ for the same (ε, δ) (accounting.gaussian). selections: its quantile trees, of which that
    takes more. The engine adds up what the steps cost by mechanisms.gaussian_cost, so a wrong
    answer fails and releases nothing more.

    own_cost: where the privacy is not ρ-zCDP turned into the (ε, δ) that was asked for: what is
    proved instead.

    answers: which question the numbers answer, as the reply's first line; empty where the kind's
    name says it (kinds.shared.answers).
    """

    columns: tuple[str, ...]
    rho: int
    mechanism: str
    reference: str
    parts: tuple[Part, ...] = ()
    passes: int = 1
    column_ms: int = 0
    draws: int = 0
    steady: bool = True
    assumptions: tuple[str, ...] = ()
    of_persons: bool = False
    holds_for_persons: bool = False
    gaussian_counts: tuple[CountSum, ...] | None = None
    selections: tuple[QuantileTree, ...] = ()
    own_cost: PrivacyCost | None = None
    answers: str = ""


class Planned(ABC):
    """A planned computation: made from public facts, costs what its outline says, and runs as a
    recipe. What it does not override is read from `outlined`, where Outline explains it.
    """

    __slots__ = ("__dict__",)  # for what is kept of it

    deadline_shares: ClassVar[tuple[float, float]] = (1.0, 1.0)
    """Of the deadline: what such plans take at most at 10⁴ and at 10⁶ records, alone, with two
    threads, on the machine whose pace is 1. `python -m benchmarks deadlines` measures them.
    """

    @property
    @abstractmethod
    def outline(self) -> Outline:
        """What the plan reads and what it costs, made anew at each call; use `outlined`."""

    @cached_property
    def outlined(self) -> Outline:
        """The outline, made once: plans of many fits ask each fit's again and again."""
        return self.outline

    @property
    @abstractmethod
    def forecast(self) -> Mapping[str, Any]:
        """Expected standard errors and the like, from public facts alone, for POST /v1/plans."""

    @abstractmethod
    def run(self) -> Recipe:
        """The generator of steps; it returns the kind's result, or None for No Reply."""

    @property
    def name(self) -> str:
        """What plans are told apart by that take different shares of the time that is expected of
        them.
        """
        return type(self).__name__

    @property
    def fit(self) -> Forecastable | None:
        """What a search for the ε of a wanted noise asks; None where there is no such forecast."""
        return None

    @property
    def precision(self) -> ForecastPrecision | None:
        """How wide its intervals will be, where public facts tell; what `ci_ratio` and `half_width`
        are looked for by.
        """
        return None

    @property
    def columns(self) -> tuple[str, ...]:
        """Which columns the plan reads."""
        return self.outlined.columns

    @property
    def rho(self) -> int:
        """The ρ of all parts together, in RHO_UNITS."""
        return self.outlined.rho

    @property
    def mechanism(self) -> str:
        """The words for the mechanism in the reply's guarantee."""
        return self.outlined.mechanism

    @property
    def reference(self) -> str:
        """The sources in the reply's guarantee."""
        return self.outlined.reference

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts that are known before the first release."""
        return self.outlined.parts

    @property
    def answers(self) -> str:
        """Which question the numbers answer, as the reply's first line; empty where the
        name says it."""
        return self.outlined.answers

    @property
    def passes(self) -> int:
        """How often the engine goes over the table."""
        return self.outlined.passes

    @property
    def column_ms(self) -> int:
        """Planned milliseconds of what is not proportional to the cells read."""
        return self.outlined.column_ms

    @property
    def draws(self) -> int:
        """How many sub-cells quantiles of an own profile draw from, one by one."""
        return self.outlined.draws

    @property
    def steady(self) -> bool:
        """Whether the time depends on n and the plan alone (Outline)."""
        return self.outlined.steady

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the guarantee rests on; empty where it holds for every table."""
        return self.outlined.assumptions

    @property
    def of_persons(self) -> bool:
        """Whether sums are over persons, whose rows count together."""
        return self.outlined.of_persons

    @property
    def holds_for_persons(self) -> bool:
        """Whether standard errors hold where the rows of one person are alike."""
        return self.outlined.holds_for_persons or self.outlined.of_persons

    @property
    def gaussian_counts(self) -> tuple[CountSum, ...] | None:
        """The counts among the parts, where all parts have Gaussian noise; else None (Outline)."""
        return self.outlined.gaussian_counts

    @property
    def selections(self) -> tuple[QuantileTree, ...]:
        """The quantile trees that the plan selects by."""
        return self.outlined.selections

    @property
    def own_cost(self) -> PrivacyCost | None:
        """The cost where it is not ρ-zCDP turned into the (ε, δ) asked for; else None."""
        return self.outlined.own_cost

    def cost(self, offer: PrivacyCost) -> PrivacyCost:
        """What is charged of an offer: (ε, δ) as asked for and the ρ of the parts, which allows
        them; or its own cost.
        """
        if self.own_cost is not None:
            return self.own_cost
        if self.rho > offer.rho:
            raise RuntimeError(_TOO_DEAR)
        return replace(offer, rho=self.rho)

    def deadline_ms(self, n: int) -> int:
        """When the reply becomes visible: from n, the columns and the plan alone, and generous.

        column_ms: the planned time of what is not proportional to cells read: statistics of whole
        columns, scores.
        """
        cells = n * len(self.columns)
        trees = [part for part in self.parts if isinstance(part, QuantileTree)]
        selected = sum(tree.sub_cells * len(tree.probabilities).bit_length() for tree in trees)
        nanoseconds = (
            cells * _COLD_NANOSECONDS
            + self.passes * cells * _PASS_NANOSECONDS
            + selected * SELECTION_NANOSECONDS
        )
        return 50 + 20 * self.passes + ceil(nanoseconds / 10**6) + self.column_ms

    def expected_ms(self, n: int) -> float:
        """What the computation takes at most where nothing else runs and the columns are in memory,
        on the machine whose pace is 1: between the two numbers of records at which shares were
        measured, the line in log n.
        """
        few, many = self.deadline_shares
        at = min(1.0, max(0.0, (log10(max(n, 1)) - 4) / 2))
        drawing = self.draws * SELECTION_NANOSECONDS / 10**6
        noise = _COUNT_MS * sum(part.bins for part in self.gaussian_counts or ())
        return (
            (few + at * (many - few)) * (self.deadline_ms(n) - drawing) + DRAWING * drawing + noise
        )

    def cold_ms(self, n: int) -> float:
        """What reading the columns adds."""
        return n * len(self.columns) * _COLD_NANOSECONDS / 10**6


@dataclass(frozen=True, slots=True)
class Plan:
    """A request made ready: everything public, fixed before a private cell is read.

    gaussian_rho: what its steps may cost by mechanisms.gaussian_cost (RHO_UNITS), where (ε, δ) is
    turned into ρ by accounting.gaussian; None: by zCDP's conversion, or, of a plan that is `lone`,
    by the exact profile of the one count that it releases (mechanisms.lone_count). facts: of the
    table that the question is about; with a view, of its one row a person. expected_ms, cold_ms: as
    Planned has them; None: not known, and the deadline stays. alone_ms: what the deadline would be
    if nothing else were computed (pipeline.pace); None: not promised yet.
    """

    facts: DatasetFacts
    query: Query
    epsilon: float
    delta: float
    cost: PrivacyCost
    guarantee: Guarantee
    planned: Planned
    deadline_ms: int
    gaussian_rho: int | None = None
    lone: bool = False
    view: PersonView | None = None
    expected_ms: float | None = None
    cold_ms: float = 0.0
    alone_ms: float | None = None

    @property
    def sort(self) -> str | None:
        """Plans of one sort take the same share of what is expected of them; None for those that
        are not steady.
        """
        if not self.planned.steady:
            return None
        return f"{self.planned.name}: {self.planned.mechanism}"

    def paid_by(self, reservation: Reservation) -> bool:
        """Whether this is what was charged: asked here only, before anything is computed. A charge
        that does not know whether noise is Gaussian was no less under any rule.
        """
        known = replace(self.cost, gaussian=self.cost.gaussian if reservation.cost.gaussian else 0)
        return (known, self.facts.version_id) == (reservation.cost, reservation.version_id)

    @property
    def gaussian_limit(self) -> int | None:
        """What its steps may cost by mechanisms.gaussian_cost (RHO_UNITS); None where its privacy
        does not rest on that.
        """
        limits = [rho for rho in (self.gaussian_rho, self.cost.gaussian) if rho]
        return min(limits, default=None)


@dataclass(frozen=True, slots=True)
class Release:
    """An answer, already paid for. status: "reply", "no_reply" or "failed"."""

    status: str
    result: dict[str, Any] | None
