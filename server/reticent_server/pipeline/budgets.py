# SPDX-License-Identifier: Apache-2.0
"""What a curator does to budgets, by the command line or by the console."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from reticent_server.accounting.conversions import zcdp_caps
from reticent_server.chain.anchors import Anchors
from reticent_server.domain.amounts import UNITS, Amounts, Rule
from reticent_server.errors import Conflict, InvalidRequest, NotFound
from reticent_server.ledger.budgets import BudgetTerms as BudgetOffer
from reticent_server.ledger.budgets import check
from reticent_server.ledger.model import Balance, analyst_account, population_account
from reticent_server.ledger.rules import decimal_floor
from reticent_server.pipeline import second_person
from reticent_server.pipeline.books import Books

NO_CAP = (
    "No cap over all analysts is set yet for this data set; until then nothing is answered about "
    "it."
)


@dataclass(frozen=True, slots=True)
class BudgetChange:
    """A budget to be set. rule None: the account's own, zcdp for a new one. by: who sets it.

    query_delta: δ″, what queries may be charged of δ under zcdp and gdp; None: as it was, a tenth
    of δ for a new account.
    """

    epsilon: float
    delta: float
    rule: Rule | None
    by: str
    query_delta: float | None = None


def set_budget(
    books: Books,
    dataset: str,
    analyst: str | None,
    offer: BudgetChange,
    *,
    project: str | None = None,
) -> Balance:
    """Sets the cap of the data set's population (neither named), or the budget and grant of an
    analyst or of a shared project.

    Raises NotFound, Conflict, InvalidPrivacy, InvalidRequest (both named), SecondPerson (the cap).
    """
    population = books.catalog.facts(dataset).population
    holder = _holder(books, analyst, project)
    if holder is None:
        wish = {
            "epsilon": offer.epsilon,
            "delta": offer.delta,
            "rule": offer.rule,
            "query_delta": offer.query_delta,
        }
        second_person.require(books.catalog, books.approvals, "cap", population, wish, by=offer.by)
        return books.ledger.set_population_cap(
            population,
            epsilon=offer.epsilon,
            delta=offer.delta,
            rule=offer.rule,
            query_delta=offer.query_delta,
            by=offer.by,
        )
    balance = books.ledger.set_analyst_budget(
        holder.id,
        dataset,
        population,
        epsilon=offer.epsilon,
        delta=offer.delta,
        rule=offer.rule,
        query_delta=offer.query_delta,
        by=offer.by,
    )
    holder.grant(holder.id, dataset, by=offer.by)
    return balance


class _Grant(Protocol):
    def __call__(self, holder_id: str, dataset: str, /, *, by: str) -> None: ...


@dataclass(frozen=True, slots=True)
class _Holder:
    """Who pays, and how a data set is granted to them."""

    id: str
    grant: _Grant


def _holder(books: Books, analyst: str | None, project: str | None) -> _Holder | None:
    if analyst is not None and project is not None:
        raise InvalidRequest("A budget is an analyst's or a project's.")
    if project is not None:
        shared = books.projects.named(project)
        if not shared.is_live:
            raise Conflict("That project is over.")
        return _Holder(shared.id, books.projects.grant)
    if analyst is None:
        return None
    principal = books.access.analyst(analyst)
    if principal.revoked:
        raise Conflict("That analyst was revoked.")
    return _Holder(principal.id, books.access.grant)


def check_offer(books: Books, dataset: str, offer: BudgetChange) -> None:
    """Raises what set_budget would raise for a new account: NotFound, InvalidPrivacy."""
    books.catalog.facts(dataset)
    check(BudgetOffer(offer.epsilon, offer.delta, offer.rule, offer.query_delta), zcdp_caps)


def has_cap(books: Books, balance: Balance) -> bool:
    """Whether there is a cap over all analysts above this account: without one nothing is
    answered.
    """
    return books.ledger.population_balance(balance.population) is not None


def account_of(books: Books, dataset: str, analyst: str | None, project: str | None = None) -> str:
    """The id of the account of a data set's population, of an analyst, or of a project.
    NotFound.
    """
    if project is not None:
        return analyst_account(books.projects.named(project).id, dataset)
    if analyst is None:
        return population_account(books.catalog.facts(dataset).population)
    return analyst_account(books.access.analyst(analyst).id, dataset)


def balance_of(books: Books, account: str) -> Balance:
    """An account. Raises NotFound."""
    balance = next((b for b in books.ledger.all_balances() if b.account == account), None)
    if balance is None:
        raise NotFound("No budget is set there.")
    return balance


def credit(
    books: Books, account: str, primary: float, delta: float, *, reason: str, by: str
) -> Balance:
    """Subtracts an amount from what is spent. primary: ε under the rule basic, ρ under the others.

    Raises NotFound, InvalidRequest (no reason, no amount), Conflict (less is spent), SecondPerson.
    """
    balance = balance_of(books, account)
    (_, first), (_, second) = UNITS[balance.rule]
    wish = {"account": account, "primary": primary, "delta": delta, "reason": reason.strip()}
    second_person.require(books.catalog, books.approvals, "credit", balance.population, wish, by=by)
    amount = Amounts(decimal_floor(primary, first), decimal_floor(delta, second))
    return books.ledger.credit(account, amount, reason=reason, by=by)


def freeze(
    books: Books, dataset: str, analyst: str | None, project: str | None, *, reason: str, by: str
) -> Balance:
    """Counts all that an account has left as spent. Raises NotFound, InvalidRequest (no reason)."""
    account = account_of(books, dataset, analyst, project)
    return books.ledger.freeze([account], reason=reason, by=by)[0]


def accept_rollback(books: Books, anchors: Anchors, *, reason: str, by: str) -> Sequence[Balance]:
    """Lets an older copy of the ledger be served: all that its accounts have left counts as spent,
    and an entry names the anchored heads that were lost (ledger.service).

    Raises Conflict where no head was lost, InvalidRequest (no reason), SecondPerson where the
    policy of any data set asks for one, CuratorError where the anchors cannot be read or written.
    """
    lost = books.ledger.lost(list(anchors.all()))
    if not lost:
        raise Conflict("Every anchored head is in this ledger: nothing was rolled back.")
    if not reason.strip():
        raise InvalidRequest("Say why, as --reason; it is kept in the ledger.")
    wish = {"lost_head": lost[-1].hash, "reason": reason.strip()}
    for population in books.catalog.populations():
        if books.catalog.asks_for_second(population.name):
            books.approvals.take("rollback", population.name, wish, by=by)
            break
    frozen = books.ledger.accept_rollback(lost, reason=reason, by=by)
    anchors.write(books.ledger.anchor())
    return frozen


def share_spent(balance: Balance) -> float:
    """The larger of the shares of the two caps that are spent, in [0, 1]."""
    primary = balance.spent.primary / balance.cap.primary
    return max(primary, balance.spent.secondary / max(balance.cap.secondary, 1))
