"""The values that carry a request through planning, charging, execution and storage."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Query
from reticent_server.domain.steps import Released, Step

Recipe = Generator[Step, tuple[Released, ...], dict[str, Any] | None]


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


class EstimatorPlan(Protocol):
    """A planned estimator: made from public facts, costs `rho` in all, runs as a recipe.

    columns: what it reads. rho: Σ of its parts' rho, in RHO_UNITS. passes: how often the engine goes
    over the table. run(): the generator of steps; its return value is the JSON-able `result`, or None
    for No Reply. forecast: expected standard errors and the like, from public facts, for POST
    /v1/plans.

    A plan may also have `cost` (PrivacyCost), where its privacy is not ρ-zCDP turned into the (ε, δ)
    that was asked for; and `column_ms`, the planned time of statistics of whole columns.
    """

    @property
    def columns(self) -> tuple[str, ...]: ...
    @property
    def rho(self) -> int: ...
    @property
    def passes(self) -> int: ...
    @property
    def mechanism(self) -> str: ...
    @property
    def reference(self) -> str: ...
    @property
    def forecast(self) -> Mapping[str, Any]: ...
    def run(self) -> Recipe: ...


@dataclass(frozen=True, slots=True)
class Plan:
    """A request made ready: everything public, fixed before a private cell is read."""

    facts: DatasetFacts
    query: Query
    epsilon: float
    delta: float
    cost: PrivacyCost
    guarantee: Guarantee
    estimator: EstimatorPlan
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class Release:
    """An answer, already paid for. status: "reply", "no_reply" or "failed"."""

    status: str
    result: dict[str, Any] | None
