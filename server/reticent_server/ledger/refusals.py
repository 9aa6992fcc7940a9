# SPDX-License-Identifier: Apache-2.0
"""What accounts answer to a request that they do not pay for, from their balances alone."""

from reticent_server.accounting import gaussian_account
from reticent_server.domain.amounts import Amounts
from reticent_server.errors import BudgetExhausted
from reticent_server.ledger.implied import implied
from reticent_server.ledger.model import Balance

_NO_ACCOUNT = {
    True: "No budget is set for you on this data set; ask its curator for one.",
    False: "No cap is set for this data set's population; ask its curator for one.",
}


def no_account(*, is_analysts: bool) -> BudgetExhausted:
    """The refusal of a request that no account would pay for."""
    return BudgetExhausted(_NO_ACCOUNT[is_analysts])


_UNPAYABLE = (
    "Under this account's rule, gdp, a question with quantiles, other selections or a test of "
    "safety may have an epsilon "
    "of at most about 2; ask with less. (A model has such a part where no profile has its "
    "columns' quartiles.)"
)


def exhausted(account: Balance, amount: Amounts) -> BudgetExhausted:
    """The refusal of a request for more than the account has left. amount: what the account would
    be charged."""
    if amount.primary == gaussian_account.UNPAYABLE:
        return BudgetExhausted(_UNPAYABLE, implied(account, account.remaining))
    whose = (
        "Your remaining budget on this data set"
        if account.analyst_id
        else "What remains of the cap over all analysts of this data set"
    )
    return BudgetExhausted(
        f"{whose} does not cover this request; ask for less, or ask its curator for more.",
        implied(account, account.remaining),
    )
