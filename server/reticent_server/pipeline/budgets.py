"""What a curator does to budgets, by the command line or by the console."""

from dataclasses import dataclass

from reticent_server.accounting.conversions import zcdp_caps
from reticent_server.domain.amounts import UNITS, Amounts, Rule
from reticent_server.errors import Conflict, NotFound
from reticent_server.ledger.budgets import DEFAULT_RULE
from reticent_server.ledger.model import Balance, analyst_account, population_account
from reticent_server.ledger.rules import budget, decimal_floor
from reticent_server.pipeline.services import Services

NO_CAP = "No cap over all analysts is set yet for this data set; until then nothing is answered about it."


@dataclass(frozen=True, slots=True)
class Offer:
    """A budget to be set. rule None: the account's own, zcdp for a new one. by: who sets it."""

    epsilon: float
    delta: float
    rule: Rule | None
    by: str


def set_budget(services: Services, dataset: str, analyst: str | None, offer: Offer) -> Balance:
    """Sets the cap of the data set's population (analyst None), or an analyst's budget and grant.

    Raises NotFound, Conflict, InvalidPrivacy.
    """
    population = services.catalog.facts(dataset).population
    given = {"epsilon": offer.epsilon, "delta": offer.delta}
    if analyst is None:
        return services.ledger.set_population_cap(population, **given, rule=offer.rule, by=offer.by)
    holder = services.access.analyst(analyst)
    if holder.revoked:
        raise Conflict("That analyst was revoked.")
    balance = services.ledger.set_analyst_budget(
        holder.id, dataset, population, **given, rule=offer.rule, by=offer.by
    )
    services.access.grant(holder.id, dataset, by=offer.by)
    return balance


def check_offer(services: Services, dataset: str, offer: Offer) -> None:
    """Raises what set_budget would raise for a new account: NotFound, InvalidPrivacy."""
    services.catalog.facts(dataset)
    budget(offer.epsilon, offer.delta, offer.rule or DEFAULT_RULE, zcdp_caps)


def has_cap(services: Services, balance: Balance) -> bool:
    """Whether there is a cap over all analysts above this account: without one nothing is answered."""
    return services.ledger.population_balance(balance.population) is not None


def account_of(services: Services, dataset: str, analyst: str | None) -> str:
    """The id of the account of a data set's population, or of an analyst. Raises NotFound."""
    if analyst is None:
        return population_account(services.catalog.facts(dataset).population)
    return analyst_account(services.access.analyst(analyst).id, dataset)


def balance_of(services: Services, account: str) -> Balance:
    """An account. Raises NotFound."""
    found = next((b for b in services.ledger.all_balances() if b.account == account), None)
    if found is None:
        raise NotFound("No budget is set there.")
    return found


def credit(
    services: Services, account: str, primary: float, delta: float, *, reason: str, by: str
) -> Balance:
    """Takes an amount off what is spent. primary: ε under the rule basic, ρ under zcdp.

    Raises NotFound, InvalidRequest (no reason, no amount), Conflict (less is spent).
    """
    (_, first), (_, second) = UNITS[balance_of(services, account).rule]
    amount = Amounts(decimal_floor(primary, first), decimal_floor(delta, second))
    return services.ledger.credit(account, amount, reason=reason, by=by)


def share_spent(balance: Balance) -> float:
    """The larger of the shares of the two caps that are spent, in [0, 1]."""
    primary = balance.spent.primary / balance.cap.primary
    return max(primary, balance.spent.secondary / max(balance.cap.secondary, 1))
