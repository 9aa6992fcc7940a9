# SPDX-License-Identifier: Apache-2.0
"""Whether the accounts cover a plan: said before anything is charged, in the units that the
accounts are kept in.

A request for more than is left is refused before it is planned (planning takes a server's time and
its answer is known); the ledger decides, when it charges.
"""

from typing import Any

from reticent_server.accounting.gaussian_account import UNPAYABLE
from reticent_server.domain.amounts import UNITS
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.plan import Plan
from reticent_server.ledger.implied import implied
from reticent_server.ledger.model import Balance, Standing
from reticent_server.ledger.refusals import exhausted, no_account
from reticent_server.ledger.rules import charge


def coverage_json(ready: Plan, standing: Standing) -> dict[str, Any]:
    """`covered`: whether a release would be charged now. By account, the analyst's and that of all
    analysts (the data set's population): what the plan costs there, null where the account's rule
    has no price for it, and what is left; null where no budget is set."""
    analyst = _account(ready, standing.analyst)
    dataset = _account(ready, standing.population)
    covered = all(each is not None and each["covered"] for each in (analyst, dataset))
    return {"covered": covered, "analyst": analyst, "dataset": dataset}


def refuse_uncovered(standing: Standing, least: PrivacyCost) -> None:
    """Raises BudgetExhausted, as charging would, where an account is not set or has less left than
    `least`."""
    for account, is_analysts in ((standing.population, False), (standing.analyst, True)):
        if account is None:
            raise no_account(is_analysts=is_analysts)
        amount = charge(least, account.rule)
        if not amount.within(account.remaining):
            raise exhausted(account, amount)


def _account(ready: Plan, balance: Balance | None) -> dict[str, Any] | None:
    if balance is None:
        return None
    amount = charge(ready.cost, balance.rule)
    cost: dict[str, float | None] = dict(amount.floats(balance.rule))
    if amount.primary == UNPAYABLE:
        cost[UNITS[balance.rule][0][0]] = None
    return {
        "rule": balance.rule,
        "cost": cost,
        "remaining": implied(balance, balance.remaining),
        "covered": amount.within(balance.remaining),
    }
