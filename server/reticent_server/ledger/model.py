# SPDX-License-Identifier: Apache-2.0
"""The frozen values of the ledger."""

import json
from dataclasses import dataclass
from typing import Any

from reticent_server.domain.amounts import Amounts, Rule
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.reservation import Reservation
from reticent_server.errors import InvalidRequest

CURATOR = "curator"
KEY_LENGTH = 255  # characters of an idempotency key, as its column has


def population_account(population: str) -> str:
    """The id of a population's account."""
    return f"population:{population}"


def analyst_account(analyst_id: str, dataset: str) -> str:
    """The id of an account for a data set: of an analyst's own project, which has the analyst's id,
    or of one that analysts share. (Accounts keep the prefix of the time when all were
    analysts'.)
    """
    return f"analyst:{analyst_id}:{dataset}"


@dataclass(frozen=True, slots=True)
class Balance:
    """An account. analyst_id (of an analyst, or of a shared project) and dataset are None for a
    population's (the cap over all analysts).

    epsilon, delta: the budget as given. cap, spent: under `rule`.
    """

    account: str
    analyst_id: str | None
    dataset: str | None
    population: str
    rule: Rule
    epsilon: int
    delta: int
    cap: Amounts
    spent: Amounts

    @property
    def remaining(self) -> Amounts:
        """What can still be charged: cap less spent, in the units of the account's rule."""
        return self.cap - self.spent


@dataclass(frozen=True, slots=True)
class Standing:
    """What a request meets in the ledger. analyst, population: its accounts, None where none is
    set; analyst is None for the curator's own, too. request: what its idempotency key was used for
    before.
    """

    analyst: Balance | None
    population: Balance | None
    request: dict[str, Any] | None = None

    @property
    def accounts(self) -> tuple[Balance, ...]:
        """The accounts that are set."""
        return tuple(b for b in (self.population, self.analyst) if b is not None)

    @property
    def has_gaussian(self) -> bool:
        """Whether accounts are set, and none of them adds up zCDP's ρ: a plan then has what
        Gaussian noise has for (ε, δ).
        """
        return bool(self.accounts) and all(b.rule != "zcdp" for b in self.accounts)

    @property
    def adds_up(self) -> bool:
        """Whether accounts are set, and all of them add up (ε, δ): a plan then may rest on what is
        proved of it alone.
        """
        return bool(self.accounts) and all(b.rule == "basic" for b in self.accounts)


@dataclass(frozen=True, slots=True)
class Charge:
    """What is to be reserved. analyst_id None: the curator's own.

    duration_ms: from the beginning of its computation to when it is shown, by plan. start_ms (since
    the epoch): when it is expected to begin, where that is later; until then it can be cancelled.
    project_id: of the shared project that pays; None: the analyst's own. promise: what is kept of
    the plan until the release is settled, as JSON.
    """

    analyst_id: str | None
    dataset: str
    version_id: str
    population: str
    cost: PrivacyCost
    request: dict[str, Any]
    idempotency_key: str | None = None
    duration_ms: int = 0
    start_ms: int | None = None
    project_id: str | None = None
    promise: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.analyst_id == "":
            raise ValueError("an analyst has an id")
        if 0 in (self.cost.epsilon, self.cost.rho):
            raise ValueError("a release that is free under one of the rules")
        if not valid_key(self.idempotency_key):
            raise InvalidRequest(
                f"An idempotency key is 1 to {KEY_LENGTH} printable ASCII characters."
            )


def valid_key(key: str | None) -> bool:
    """Whether it can be an idempotency key."""
    if key is None:
        return True
    return 0 < len(key) <= KEY_LENGTH and key.isascii() and key.isprintable()


@dataclass(frozen=True, slots=True)
class ReleaseRecord:
    """A stored release, field by column.

    owner: the analyst's id, "" for the curator's own. project_id: of the shared project that is
    charged; None: the owner's own. body None: pending. start_ms, duration_ms: None in releases of
    an earlier version.
    """

    id: str
    owner: str
    dataset: str
    version_id: str
    population: str
    request: str
    request_sha256: str
    idempotency_key: str | None
    epsilon: int
    delta: int
    rho: int
    rho_delta: int
    created_at: str
    status: str
    body: bytes | None
    lease: str
    lease_until_ms: int
    start_ms: int | None
    duration_ms: int | None
    project_id: str | None = None
    promise: str | None = None
    gaussian: int | None = None

    @property
    def promised(self) -> dict[str, Any] | None:
        """What was kept of the plan; None in releases of an earlier version."""
        return None if self.promise is None else dict(json.loads(self.promise))

    @property
    def cost(self) -> PrivacyCost:
        """What was charged, in every unit that a rule may count."""
        return PrivacyCost(self.epsilon, self.delta, self.rho, self.rho_delta, self.gaussian or 0)

    @property
    def accounts(self) -> tuple[str, ...]:
        """The accounts that it is debited to, in the order in which they are locked."""
        population = population_account(self.population)
        if not self.owner:
            return (population,)
        return population, analyst_account(self.project_id or self.owner, self.dataset)

    @property
    def reservation(self) -> Reservation:
        """The charge as the engine knows it."""
        return Reservation(self.id, self.version_id, self.cost, self.created_at, self.lease)


@dataclass(frozen=True, slots=True)
class Fresh:
    """Charged now; to be computed."""

    reservation: Reservation


@dataclass(frozen=True, slots=True)
class Replay:
    """Charged and settled before: the stored bytes."""

    body: bytes


@dataclass(frozen=True, slots=True)
class InFlight:
    """Charged before, and being computed by the holder of its lease."""

    release_id: str


@dataclass(frozen=True, slots=True)
class Stale:
    """Charged before, and abandoned: the caller holds the lease now and computes `request`, at once
    or, where the lease is a queued one, in a turn of `duration_ms`.
    """

    reservation: Reservation
    request: dict[str, Any]
    analyst_id: str | None
    dataset: str
    population: str
    duration_ms: int = 0
    promise: dict[str, Any] | None = None


Outcome = Fresh | Replay | InFlight | Stale


@dataclass(frozen=True, slots=True)
class Pending:
    """A release that is charged and not settled; all of it is public.

    queued: whether its computation has not begun, so that it can be cancelled. start_ms: when it
    begins by plan, since the epoch; of a queued one, when it was expected to. duration_ms: from
    there to when it is shown.
    """

    id: str
    dataset: str
    version_id: str
    created_at: str
    cost: PrivacyCost
    request: dict[str, Any]
    queued: bool = False
    start_ms: int = 0
    duration_ms: int = 0
    promise: dict[str, Any] | None = None
