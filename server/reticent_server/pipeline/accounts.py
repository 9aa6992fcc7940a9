# SPDX-License-Identifier: Apache-2.0
"""An account as JSON and in words, as analysts, the console and the command line show it."""

from typing import Any

from reticent_server.domain.amounts import Amounts
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, from_units
from reticent_server.ledger.implied import implied
from reticent_server.ledger.model import Balance

Json = dict[str, Any]


def account_json(balance: Balance, project: str | None = None) -> Json:
    """An account, the same for its analyst, the console and the command line: `total`, `spent` and
    `remaining` in the units that it is kept in, which add up: (ε, δ) under basic, (rho, rho_delta)
    under zcdp and gdp.

    Under these `total` has the (ε, δ) that were given, too, and `spent` and `remaining` have the ε
    that their rho implies at the account's δ′; as it grows like √rho, those two do not add up to
    the total. `spent_share` is what of the promise is spent, the same wherever one is shown
    (share_of_epsilon). project: the name of the shared project whose account it is; None: the
    analyst's own.
    """
    return {
        "dataset": balance.dataset,
        "project": project,
        "rule": balance.rule,
        "total": _given(balance) | balance.cap.floats(balance.rule),
        "spent": implied(balance, balance.spent),
        "spent_share": share_of_epsilon(balance),
        "remaining": implied(balance, balance.remaining),
    }


def account_row(balance: Balance) -> dict[str, str]:
    """An account in words, by column: the same figures and units in the console and on the command
    line.
    """
    document, rule = account_json(balance), balance.rule
    row = {
        "rule": rule,
        "promise": f"ε = {document['total']['epsilon']:.6g}, δ = {document['total']['delta']:.6g}",
        "total": balance.cap.text(rule),
        "spent": f"{100 * document['spent_share']:.3g} % ({balance.spent.text(rule)})",
        "left": balance.remaining.text(rule),
    }
    return row | {"left as ε": f"{document['remaining']['epsilon']:.6g}"}


def _given(balance: Balance) -> dict[str, float]:
    return {
        "epsilon": from_units(balance.epsilon, EPSILON_UNITS),
        "delta": from_units(balance.delta, DELTA_UNITS),
    }


def share_of_epsilon(balance: Balance, amount: Amounts | None = None) -> float:
    """The spent part of the ε that was given, in [0, 1], or of δ where that is the larger: in the
    units in which it was promised. amount: in the place of what is spent.
    """
    amount = balance.spent if amount is None else amount
    spent, given = implied(balance, amount), from_units(balance.epsilon, EPSILON_UNITS)
    primary = spent.get("epsilon", 0.0) / given if given else 0.0
    return min(max(primary, amount.secondary / max(balance.cap.secondary, 1)), 1.0)
