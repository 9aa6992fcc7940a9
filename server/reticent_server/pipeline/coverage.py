# SPDX-License-Identifier: Apache-2.0
"""Whether the accounts cover a plan: said before anything is charged, in the units that the accounts are kept in."""

from typing import Any

from reticent_server.domain.plan import Plan
from reticent_server.ledger.implied import implied
from reticent_server.ledger.model import Balance, Standing
from reticent_server.ledger.rules import charge


def coverage_json(ready: Plan, standing: Standing) -> dict[str, Any]:
    """`covered`: whether a release would be charged now. By account, the analyst's and that of all analysts (the
    data set's population): what the plan costs there and what is left; null where no budget is set."""
    analyst = _account(ready, standing.analyst)
    dataset = _account(ready, standing.population)
    covered = all(each is not None and each["covered"] for each in (analyst, dataset))
    return {"covered": covered, "analyst": analyst, "dataset": dataset}


def _account(ready: Plan, balance: Balance | None) -> dict[str, Any] | None:
    if balance is None:
        return None
    amount = charge(ready.cost, balance.rule)
    return {
        "rule": balance.rule,
        "cost": amount.floats(balance.rule),
        "remaining": implied(balance, balance.remaining),
        "covered": amount.within(balance.remaining),
    }
