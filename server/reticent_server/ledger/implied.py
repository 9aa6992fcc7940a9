# SPDX-License-Identifier: Apache-2.0
"""An amount of an account in epsilon, in which people think, beside the units that the account is kept in."""

from functools import lru_cache

from reticent_server.accounting.conversions import epsilon_of
from reticent_server.domain.amounts import Amounts
from reticent_server.domain.cost import DELTA_UNITS, from_units
from reticent_server.ledger.model import Balance

_epsilon_of = lru_cache(maxsize=4096)(epsilon_of)  # a bisection of 1 ms


def implied(balance: Balance, amount: Amounts) -> dict[str, float]:
    """An amount of an account as floats, with the ε that it amounts to."""
    if balance.rule == "basic":
        return amount.floats("basic")
    conversion = from_units(balance.delta - balance.cap.secondary, DELTA_UNITS)  # δ′ = δ − δ″
    return {"epsilon": _epsilon_of(amount.primary, conversion)} | amount.floats("zcdp")
