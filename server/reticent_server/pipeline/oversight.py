# SPDX-License-Identifier: Apache-2.0
"""What a curator looks at: the trail of entries, anybody's release.

All of it comes from public facts and from the ledger: nothing here reaches the vault.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reticent_server.chain.acts import DIGEST
from reticent_server.chain.entries import Draft, Entry
from reticent_server.chain.repository import TrailPart
from reticent_server.domain.amounts import SYMBOLS
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, from_units
from reticent_server.domain.query import Query, query_json
from reticent_server.errors import NotFound
from reticent_server.ledger.model import CURATOR, Balance
from reticent_server.pipeline.browse import shown
from reticent_server.pipeline.services import Services

Json = dict[str, Any]

EVERYBODY = "all analysts"


@dataclass(frozen=True, slots=True)
class TrailRow:
    """One entry in words. who: the actor. amount: the change to `spent`.

    whose, about: the account; of an administrative act, about is the row, and nobody's account
    changes.
    """

    seq: int
    at: str
    action: str
    who: str
    whose: str
    about: str
    amount: str
    release_id: str
    note: str
    hash: str


@dataclass(frozen=True, slots=True)
class TrailPage:
    """rows: newest first. before: the number to continue from; None on the last page."""

    rows: tuple[TrailRow, ...]
    before: int | None


def trail(
    services: Services,
    text: str = "",
    *,
    before: int | None = None,
    limit: int = 50,
    part: TrailPart = TrailPart.ALL,
) -> TrailPage:
    """The last entries of a part that name `text`: an analyst, a data set, an action, a reason, a
    release."""
    names = services.names()
    ids = [holder for holder, name in names.items() if text.casefold() in name.casefold()]
    words = [text, *ids] if text else []
    entries = services.ledger.search(words, before=before, limit=limit + 1, part=part)
    accounts = {b.account: b for b in services.ledger.all_balances()}
    rows = tuple(_row(e, accounts.get(e.draft.account or ""), names) for e in entries[:limit])
    return TrailPage(rows, entries[limit - 1].seq if len(entries) > limit else None)


def account_trail(services: Services, balance: Balance, limit: int = 20) -> tuple[TrailRow, ...]:
    """The last entries of one account, newest first."""
    names = services.names()
    return tuple(_row(e, balance, names) for e in services.ledger.entries(balance.account, limit))


def _row(entry: Entry, account: Balance | None, names: Mapping[str, str]) -> TrailRow:
    draft = entry.draft
    return TrailRow(
        seq=entry.seq,
        at=draft.at or "",
        action=draft.action,
        who=names.get(draft.actor, draft.actor),
        whose="" if account is None else _whose(account, names),
        about=_subject(draft, names) if account is None else account.dataset or account.population,
        amount="" if account is None else _amount(entry, account),
        release_id=draft.release_id or "",
        note=_note(draft.detail),
        hash=entry.hash,
    )


def _subject(draft: Draft, names: Mapping[str, str]) -> str:
    """What an administrative act is about, with names for ids: "grant ana, houses"."""
    noun, *key = (draft.subject or "").split(":")
    return f"{noun} {', '.join(names.get(part, part) for part in key)}"


def _amount(entry: Entry, account: Balance) -> str:
    change = entry.draft.change.floats(account.rule)
    named = zip(SYMBOLS[account.rule], change.values(), strict=True)
    return ", ".join(f"{symbol} {value:+.4g}" for symbol, value in named if value)


def _note(detail: Mapping[str, Any]) -> str:
    """The reason of a credit; the budget that was set; how a release was settled; what an act
    set."""
    if "epsilon" in detail:
        epsilon, delta = detail["epsilon"], detail["delta"]
        total = f"{from_units(epsilon, EPSILON_UNITS):g}, {from_units(delta, DELTA_UNITS):g}"
        return f"(ε, δ) = ({total})"
    said = detail.get("reason") or detail.get("status")
    return str(said) if said else _told(detail)


def _told(detail: Mapping[str, Any]) -> str:
    """The public facts of an administrative act."""
    hidden = {DIGEST, "body_sha256", "release_sha256", "turn"}
    shown = {k: v for k, v in detail.items() if k not in hidden and not k.endswith("_cap")}
    return ", ".join(f"{name} {value}" for name, value in sorted(shown.items()))


def whose(services: Services, balance: Balance) -> str:
    """The analyst's or the project's name, or that it is everybody's."""
    return _whose(balance, services.names())


def _whose(balance: Balance, names: Mapping[str, str]) -> str:
    return names.get(balance.analyst_id, balance.analyst_id) if balance.analyst_id else EVERYBODY


@dataclass(frozen=True, slots=True)
class ShownRelease:
    """document: as its owner gets it. owner: the analyst's name, or CURATOR. entries: its own."""

    document: Json
    owner: str
    entries: Sequence[TrailRow]


def release(services: Services, release_id: str) -> ShownRelease:
    """Anybody's release. Raises NotFound."""
    body = services.ledger.any_release(release_id)
    if body is None:
        raise NotFound("There is no such release.")
    owner, stored = body
    document = json.loads(shown(services, stored))
    name = CURATOR if owner is None else services.names().get(owner, owner)
    rows = trail(services, document["id"]).rows
    return ShownRelease(document, name, [row for row in rows if row.release_id == document["id"]])


def asked(services: Services, rows: Sequence[TrailRow]) -> dict[str, str]:
    """What each release that the rows name was asked: its kind, and its formula or column. By the
    release's id."""
    ids = dict.fromkeys(row.release_id for row in rows if row.release_id)
    stored = {each: services.ledger.any_release(each) for each in ids}
    return {
        each: _question(json.loads(shown(services, found[1]))["query"])
        for each, found in stored.items()
        if found is not None
    }


def question(query: Query) -> str:
    """A question in a line: its kind, and its formula or columns."""
    return _question(query_json(query))


def _question(query: Json) -> str:
    told = query.get("formula") or query.get("column") or ", ".join(query.get("columns") or ())
    kind = str(query["kind"]).replace("_", " ")
    return f"{kind}: {told}" if told else kind
