# SPDX-License-Identifier: Apache-2.0
"""What a query takes from the accounts that pay: the analyst's, and everybody's."""

from dataclasses import dataclass

from reticent_server.accounting.gaussian_account import UNPAYABLE
from reticent_server.domain.amounts import Amounts
from reticent_server.domain.cost import EPSILON_UNITS, PrivacyCost, from_units
from reticent_server.domain.plan import Plan
from reticent_server.ledger.implied import implied
from reticent_server.ledger.model import Balance, Standing
from reticent_server.ledger.rules import charge
from reticent_server.pipeline.accounts import account_json, share_of_epsilon
from reticent_server.pipeline.coverage import coverage_json


@dataclass(frozen=True, slots=True)
class Purse:
    """An account before and after a query. total, left, after: as ε. spent_share, query_share: of
    the ε that was given (pipeline.accounts.share_of_epsilon), before the query and by it. of_rest:
    what part of the rest the query takes; None: it has no price under the account's rule. None
    after: it does not suffice.
    """

    whose: str
    rule: str
    total: float
    left: float
    after: float | None
    spent_share: float
    query_share: float
    of_rest: float | None


def money(epsilon: float) -> str:
    """An ε that is paid: two decimals, and as many more as it has, so that no sum is named smaller
    than it is.
    """
    rounded = f"{epsilon:.2f}"
    return rounded if float(rounded) == epsilon else f"{epsilon:.9g}"


@dataclass(frozen=True, slots=True)
class Price:
    """What a release is charged, as ε, what it leaves in each purse, and whether they would pay it
    now.
    """

    epsilon: float
    purses: tuple[Purse, ...]
    is_covered: bool


def price(ready: Plan, standing: Standing) -> Price:
    """The price of a plan in the accounts that would pay."""
    epsilon = from_units(ready.cost.epsilon, EPSILON_UNITS)
    return Price(epsilon, purses(standing, ready.cost), coverage_json(ready, standing)["covered"])


def purses(standing: Standing, cost: PrivacyCost) -> tuple[Purse, ...]:
    """The purses of the accounts that there are; both are charged."""
    named = (("Your budget", standing.analyst), ("All analysts together", standing.population))
    return tuple(_purse(whose, balance, cost) for whose, balance in named if balance is not None)


def _purse(whose: str, balance: Balance, cost: PrivacyCost) -> Purse:
    amount, rest = charge(cost, balance.rule), balance.remaining
    covered = amount.within(rest)
    after = Amounts(rest.primary - amount.primary, rest.secondary - amount.secondary)
    document = account_json(balance)
    spent = share_of_epsilon(balance)
    return Purse(
        whose=whose,
        rule=balance.rule,
        total=document["total"]["epsilon"],
        left=document["remaining"]["epsilon"],
        after=implied(balance, after)["epsilon"] if covered else None,
        spent_share=spent,
        query_share=(share_of_epsilon(balance, balance.spent + amount) if covered else 1.0) - spent,
        of_rest=None if amount.primary == UNPAYABLE else amount.primary / max(1, rest.primary),
    )
