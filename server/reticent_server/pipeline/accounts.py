# SPDX-License-Identifier: Apache-2.0
"""An account as JSON and in words, as analysts, the console and the command line show it."""

from functools import lru_cache
from typing import Any

from reticent_server.accounting.conversions import epsilon_of
from reticent_server.domain.amounts import Amounts
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, from_units
from reticent_server.ledger.model import Balance

Json = dict[str, Any]

_epsilon_of = lru_cache(maxsize=4096)(epsilon_of)  # a bisection of 1 ms


def account_json(balance: Balance, project: str | None = None) -> Json:
    """An account, the same for its analyst, the console and the command line: `total`, `spent` and `remaining`
    in the units that it is kept in, which add up: (ε, δ) under basic, (rho, rho_delta) under zcdp.

    Under zcdp `total` has the (ε, δ) that were given, too, and `spent` and `remaining` have the ε that their
    rho implies at the account's δ′; as it grows like √rho, those two do not add up to the total.
    project: the name of the shared project whose account it is; None: the analyst's own.
    """
    return {
        "dataset": balance.dataset,
        "project": project,
        "rule": balance.rule,
        "total": _given(balance) | balance.cap.floats(balance.rule),
        "spent": implied(balance, balance.spent),
        "remaining": implied(balance, balance.remaining),
    }


def account_row(balance: Balance) -> dict[str, str]:
    """An account in words, by column: the same figures and units in the console and on the command line."""
    document, rule = account_json(balance), balance.rule
    row = {
        "rule": rule,
        "promise": f"ε = {document['total']['epsilon']:.6g}, δ = {document['total']['delta']:.6g}",
        "total": balance.cap.text(rule),
        "spent": balance.spent.text(rule),
        "left": balance.remaining.text(rule),
    }
    return row | {"left as ε": f"{document['remaining']['epsilon']:.6g}"}


def _given(balance: Balance) -> dict[str, float]:
    return {
        "epsilon": from_units(balance.epsilon, EPSILON_UNITS),
        "delta": from_units(balance.delta, DELTA_UNITS),
    }


def implied(balance: Balance, amount: Amounts) -> dict[str, float]:
    """An amount of an account as floats, with the ε that it amounts to."""
    if balance.rule == "basic":
        return amount.floats("basic")
    conversion = from_units(balance.delta - balance.cap.secondary, DELTA_UNITS)  # δ′ = δ − δ″
    return {"epsilon": _epsilon_of(amount.primary, conversion)} | amount.floats("zcdp")
