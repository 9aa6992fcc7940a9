# SPDX-License-Identifier: Apache-2.0
"""An account over time in ε: what was spent, against the cap that stood then. From the ledger's
entries alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from reticent_server.chain.entries import Entry
from reticent_server.domain.amounts import Amounts
from reticent_server.domain.cost import EPSILON_UNITS, from_units
from reticent_server.ledger.implied import implied
from reticent_server.ledger.model import Balance
from reticent_server.pipeline.services import Services

HISTORY = 2_000
"""Last entries of an account that a page looks at."""

POINTS = 160
"""Charges of a chart, four pixels each of its 640: an ε under zcdp or gdp is a bisection of 1
ms.
"""

_CAPS = ("open", "cap")
"""Actions of entries that say what the cap is from then on."""


@dataclass(frozen=True, slots=True)
class AccountPoint:
    """An account after one entry, in ε (under zcdp and gdp: the ε that the spent ρ implies at the
    account's δ′ of that time, and the ε that was given as the cap). at: ISO 8601. sets_cap: whether
    the entry opened the account or changed its cap.
    """

    at: str
    cap: float
    spent: float
    sets_cap: bool


def history(services: Services, balance: Balance) -> tuple[AccountPoint, ...]:
    """The account after its last entries, oldest first: after each change of the cap, and after at
    most POINTS others.
    """
    entries = services.ledger.entries(balance.account, HISTORY)[::-1]
    caps = services.ledger.entries(balance.account, HISTORY, _CAPS)
    before = next((e for e in caps if entries and e.seq < entries[0].seq), None)
    state = balance if before is None else _capped(balance, before)
    spent = balance.spent.primary - sum(e.draft.change.primary for e in entries)
    states = [e for e in _states(state, spent, entries) if e[0].draft.at is not None]
    return tuple(_point(*each) for each in _thinned(states))


def _states(
    state: Balance, spent: int, entries: Sequence[Entry]
) -> Iterator[tuple[Entry, Balance]]:
    """Each entry with the account after it."""
    for entry in entries:
        spent += entry.draft.change.primary
        state = _capped(state, entry) if entry.draft.action in _CAPS else state
        state = replace(state, spent=Amounts(spent, 0))
        yield entry, state


def _capped(state: Balance, entry: Entry) -> Balance:
    said = entry.draft.detail
    cap = Amounts(said["primary_cap"], said["secondary_cap"])
    return replace(state, epsilon=said["epsilon"], delta=said["delta"], cap=cap)


def _thinned(states: Sequence[tuple[Entry, Balance]]) -> Iterator[tuple[Entry, Balance]]:
    """Every change of the cap, the last state, and every k-th of the others: what is spent adds up,
    so that a point says the same whatever was left out before it.
    """
    step = -(-len(states) // POINTS) if states else 1
    for i, (entry, state) in enumerate(states, start=1):
        if i % step == 0 or i == len(states) or entry.draft.action in _CAPS:
            yield entry, state


def _point(entry: Entry, state: Balance) -> AccountPoint:
    return AccountPoint(
        at=entry.draft.at or "",
        cap=from_units(state.epsilon, EPSILON_UNITS),
        spent=implied(state, state.spent)["epsilon"],
        sets_cap=entry.draft.action in _CAPS,
    )
