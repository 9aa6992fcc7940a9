"""Looking for entries and releases, as a curator does."""

import pytest

from reticent_server.chain.entries import Entry
from reticent_server.domain.amounts import Amounts
from reticent_server.domain.cost import EPSILON_UNITS
from reticent_server.ledger.model import analyst_account
from reticent_server.ledger.service import Fresh, Ledger, Pending
from support.ledger.accounts import ask, open_accounts


def numbers(found: tuple[Entry, ...]) -> list[int]:
    return [entry.seq for entry in found]


def test_entries_are_found_by_words_and_by_page(ledger: Ledger) -> None:
    open_accounts(ledger)
    first = ask(ledger)
    assert isinstance(first, Fresh)
    account = analyst_account("alice", "houses")
    amount = Amounts(EPSILON_UNITS // 100, 0)
    ledger.credit(account, amount, reason='50% "naïve" ÄRGER_x', by="cli:dora")
    assert numbers(ledger.search()) == [5, 4, 3, 2, 1]
    assert numbers(ledger.search(before=4, limit=2)) == [3, 2]
    assert numbers(ledger.search(["CREDIT"])) == [5]
    assert numbers(ledger.search(["dora"])) == [5]
    assert numbers(ledger.search(['"naïve" Ä'])) == [5]
    assert numbers(ledger.search([first.reservation.id])) == [4, 3]
    assert numbers(ledger.search(["dora", first.reservation.id])) == [5, 4, 3]
    assert numbers(ledger.search(["alice:houses"], before=5)) == [4, 2]


@pytest.mark.parametrize(
    ("word", "found"), [("50%", [5]), ("R_x", [5]), ("a\\b", [5]), ("5%Ä", []), ("ÄRG_R", [])]
)
def test_signs_of_like_are_taken_literally(ledger: Ledger, word: str, found: list[int]) -> None:
    open_accounts(ledger)
    ask(ledger)
    reason = "50% ÄRGER_x a\\b"
    ledger.credit(analyst_account("alice", "houses"), Amounts(1, 0), reason=reason, by="c")
    assert numbers(ledger.search([word])) == found


def test_the_curator_finds_anybody_s_release(ledger: Ledger) -> None:
    open_accounts(ledger)
    made = ask(ledger)
    assert isinstance(made, Fresh)
    found = ledger.any_release(made.reservation.id)
    assert found is not None
    assert (found[0], type(found[1])) == ("alice", Pending)
    ledger.settle(made.reservation, "reply", b"{}")
    assert ledger.any_release(made.reservation.id) == ("alice", b"{}")
    own = ask(ledger, analyst_id=None)
    assert isinstance(own, Fresh)
    assert (ledger.any_release(own.reservation.id) or ("",))[0] is None
    assert ledger.any_release("rel_nobody") is None
    assert ledger.any_release("\x00") is None
