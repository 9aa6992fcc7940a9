# SPDX-License-Identifier: Apache-2.0
"""What a curator does to accounts: open, change the cap, credit. Each is one entry in the chain."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from reticent_server.chain import repository as chain
from reticent_server.chain.entries import Draft
from reticent_server.domain.amounts import ZERO, Amounts, Rule
from reticent_server.domain.cost import DELTA_UNITS
from reticent_server.errors import Conflict, InvalidPrivacy, InvalidRequest, NotFound
from reticent_server.ledger import repository
from reticent_server.ledger.model import Balance
from reticent_server.ledger.rules import BudgetLimits, ZcdpCaps, budget, decimal_floor

DEFAULT_RULE: Rule = "zcdp"


@dataclass(frozen=True, slots=True)
class Holder:
    """Whose account: analyst_id and dataset are None for a population's."""

    account: str
    population: str
    analyst_id: str | None = None
    dataset: str | None = None


@dataclass(frozen=True, slots=True)
class BudgetTerms:
    """What a curator sets. rule None: the account's own, zcdp for a new one.

    query_delta: δ″, of δ what queries may be charged under zcdp and gdp. None: the same share of δ
    as it was, and for a new account the usual one.
    """

    epsilon: float
    delta: float
    rule: Rule | None
    query_delta: float | None = None


def set_budget(
    connection: Connection,
    holder: Holder,
    offer: BudgetTerms,
    zcdp_caps: ZcdpCaps,
    by: str,
    at: str,
) -> Balance:
    """Opens the account, or changes its cap.

    Raises Conflict for a cap below what is spent, another rule or another population;
    InvalidPrivacy for amounts that are no budget.
    """
    present = repository.account(connection, holder.account)
    rule = offer.rule or (present.rule if present else DEFAULT_RULE)
    wanted = budget(offer.epsilon, offer.delta, rule, zcdp_caps, _second(offer, rule, present))
    if present is None:
        return _open(connection, holder, rule, wanted, by, at)
    if (present.rule, present.population) != (rule, holder.population):
        raise Conflict("An account keeps the rule and the population that it was opened with.")
    _refuse_exchange(present, wanted, offer)
    if not repository.change_cap(connection, holder.account, wanted):
        raise Conflict("More than that is spent already; a cap cannot be below what is spent.")
    draft = Draft("cap", holder.account, by, at, detail=_caps(wanted))
    chain.append(connection, [draft])
    return replace(present, epsilon=wanted.epsilon, delta=wanted.delta, cap=wanted.cap)


def _refuse_exchange(present: Balance, wanted: BudgetLimits, offer: BudgetTerms) -> None:
    """Raises Conflict where one cap would be exchanged for the other after something was charged
    (see ledger.rules): a split of δ that follows from answers has no proof.
    """
    exchanged = not (present.cap.within(wanted.cap) or wanted.cap.within(present.cap))
    if offer.query_delta is not None and present.spent != ZERO and exchanged:
        raise Conflict(
            "Something is charged already: the delta for queries cannot be changed at the cost "
            "of rho, or rho at "
            "its cost. Raise epsilon and delta so that neither becomes smaller."
        )


def check(offer: BudgetTerms, zcdp_caps: ZcdpCaps) -> None:
    """Raises the InvalidPrivacy that opening an account with this offer would raise."""
    rule = offer.rule or DEFAULT_RULE
    budget(offer.epsilon, offer.delta, rule, zcdp_caps, _second(offer, rule, None))


def _second(offer: BudgetTerms, rule: Rule, present: Balance | None) -> int | None:
    """δ″ in units; None: the usual part of δ. Raises InvalidPrivacy."""
    if offer.query_delta is not None:
        if rule == "basic":
            raise InvalidPrivacy(
                "Only an account under the rule zcdp or gdp has a delta for queries."
            )
        return decimal_floor(offer.query_delta, DELTA_UNITS)
    if rule == "basic" or present is None or present.rule != rule:
        return None
    return decimal_floor(offer.delta, DELTA_UNITS) * present.cap.secondary // present.delta


def _open(
    connection: Connection, holder: Holder, rule: Rule, wanted: BudgetLimits, by: str, at: str
) -> Balance:
    opened = Balance(
        account=holder.account,
        analyst_id=holder.analyst_id,
        dataset=holder.dataset,
        population=holder.population,
        rule=rule,
        epsilon=wanted.epsilon,
        delta=wanted.delta,
        cap=wanted.cap,
        spent=ZERO,
    )
    repository.insert_account(connection, opened)
    named = {
        "analyst_id": holder.analyst_id,
        "dataset": holder.dataset,
        "population": holder.population,
        "rule": rule,
    }
    draft = Draft("open", holder.account, by, at, detail=named | _caps(wanted))
    chain.append(connection, [draft])
    return opened


def _caps(wanted: BudgetLimits) -> dict[str, Any]:
    return {
        "epsilon": wanted.epsilon,
        "delta": wanted.delta,
        "primary_cap": wanted.cap.primary,
        "secondary_cap": wanted.cap.secondary,
    }


def _reason(text: str, what: str) -> str:
    """The reason without blanks around it. Raises InvalidRequest where it says nothing."""
    if not text.strip():
        raise InvalidRequest(f"{what} needs a reason, which is kept in the ledger.")
    return text.strip()


def credit(
    connection: Connection, account_id: str, amount: Amounts, reason: str, by: str, at: str
) -> Balance:
    """Subtracts `amount` from what is spent. Raises NotFound, InvalidRequest, or Conflict if less
    is spent, or where `by` has credited the account for the same reason before: it was sent twice.
    """
    reason = _reason(reason, "A credit")
    if not ZERO.within(amount) or amount == ZERO:
        raise InvalidRequest("A credit is an amount above zero.")
    present = repository.account(connection, account_id)
    if present is None:
        raise NotFound("There is no such account.")
    if not repository.give_back(connection, account_id, amount):
        raise Conflict("Less than that has been spent; credit at most what has been spent.")
    _refuse_twice(connection, account_id, reason, by)  # the account's row is locked by now
    draft = Draft("credit", account_id, by, at, None, ZERO - amount, {"reason": reason})
    chain.append(connection, [draft])
    return replace(present, spent=present.spent - amount)


def _refuse_twice(connection: Connection, account_id: str, reason: str, by: str) -> None:
    """Whatever was charged since: between two sendings there may be minutes, and other people's
    work.
    """
    for entry in chain.entries_with(connection, account_id, "credit", by, {"reason": reason}):
        raise Conflict(
            f"Entry {entry.seq} is a credit with the same reason, so this one was sent twice. "
            "Where a second credit is meant, say so in its reason."
        )


def freeze(
    connection: Connection, account_ids: Sequence[str] | None, reason: str, by: str, at: str
) -> list[Balance]:
    """Counts all that accounts have left as spent, so that nothing is answered from them until a
    curator raises a cap or gives back what was certainly not spent. account_ids: None: all of them.

    Raises NotFound, InvalidRequest (no reason).
    """
    reason = _reason(reason, "Freezing an account")
    wanted = repository.lock_accounts(connection, account_ids)
    if account_ids is not None and len(wanted) != len(set(account_ids)):
        raise NotFound("No budget is set there.")
    drafts = []
    for account in wanted:
        left = account.cap - account.spent
        if left != ZERO:
            repository.spend(connection, account.account, left)
            drafts.append(Draft("debit", account.account, by, at, None, left, {"reason": reason}))
    if drafts:
        chain.append(connection, drafts)
    return [replace(account, spent=account.cap) for account in wanted]
