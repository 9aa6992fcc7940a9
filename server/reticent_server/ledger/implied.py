# SPDX-License-Identifier: Apache-2.0
"""An amount of an account in epsilon, in which people think, beside the units that the account is
kept in.
"""

from functools import lru_cache

from reticent_server.accounting import conversions, gaussian_account
from reticent_server.domain.amounts import Amounts, Rule
from reticent_server.domain.cost import DELTA_UNITS, from_units
from reticent_server.ledger.model import Balance

_BY_RULE = {"zcdp": conversions.epsilon_of, "gdp": gaussian_account.epsilon_of}


@lru_cache(maxsize=4096)  # a bisection of 1 ms
def _epsilon_of(rule: Rule, rho: int, delta: float) -> float:
    return _BY_RULE[rule](rho, delta)


def implied(balance: Balance, amount: Amounts) -> dict[str, float]:
    """An amount of an account as floats, with the ε that it amounts to; without it where no δ′ is
    left to convert with.
    """
    conversion = from_units(balance.delta - balance.cap.secondary, DELTA_UNITS)  # δ′ = δ − δ″
    if balance.rule == "basic" or conversion <= 0:
        return amount.floats(balance.rule)
    epsilon = _epsilon_of(balance.rule, amount.primary, conversion)
    return {"epsilon": epsilon} | amount.floats(balance.rule)
