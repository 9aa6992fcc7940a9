# SPDX-License-Identifier: Apache-2.0
"""What the ledger's tests share: a tenth, and asking for it."""

from typing import Any

from reticent_server.domain.cost import EPSILON_UNITS, RHO_UNITS, PrivacyCost
from reticent_server.ledger.model import Charge
from reticent_server.ledger.service import Ledger, Outcome

LEASE_SECONDS = 600
TENTH = PrivacyCost(
    epsilon=EPSILON_UNITS // 10,
    delta=10**11,
    rho=RHO_UNITS // 10,
    rho_delta=10**11,
    gaussian=RHO_UNITS // 9,
)
"""A tenth of open_accounts' budget, under either rule."""


def whole_caps(epsilon_units: int, delta_units: int, second: int | None = None) -> tuple[int, int]:
    """In place of accounting's conversion: ε = 1 gives ρ* = 1, so that a tenth is a tenth."""
    return epsilon_units * (RHO_UNITS // EPSILON_UNITS), delta_units if second is None else second


def open_accounts(ledger: Ledger, *, rule: Any = "basic", cap: float = 1.0) -> None:
    """A cap for the population, and as much for alice on houses."""
    given = {"epsilon": cap, "delta": 1e-6, "rule": rule, "by": "carol"}
    ledger.set_population_cap("people", **given)
    ledger.set_analyst_budget("alice", "houses", "people", **given)


def ask(ledger: Ledger, **changes: Any) -> Outcome:
    """alice asks for a tenth on houses."""
    given: dict[str, Any] = {
        "analyst_id": "alice",
        "dataset": "houses",
        "version_id": "v1",
        "population": "people",
        "cost": TENTH,
        "request": {"query": {"kind": "count"}, "privacy": {"epsilon": 0.1}},
        "idempotency_key": None,
        "promise": {"deadline_ms": 100},
    }
    return ledger.reserve(Charge(**(given | changes)))
