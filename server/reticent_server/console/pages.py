# SPDX-License-Identifier: Apache-2.0
"""The pages of data sets and releases: public facts, accounts, guarantees."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Response

from reticent_server.console.charts import BurnDown, burn_down
from reticent_server.console.looking import Signed
from reticent_server.domain.amounts import Amounts
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.roles import Act
from reticent_server.domain.schema import Column
from reticent_server.errors import InvalidRequest, NotFound, ReticentError
from reticent_server.ledger.model import Balance
from reticent_server.pipeline import oversight, publishing
from reticent_server.pipeline.account_history import HISTORY, history
from reticent_server.pipeline.accounts import account_row, share_of_epsilon
from reticent_server.pipeline.policies import TIERS
from reticent_server.pipeline.profile import unresolved
from reticent_server.pipeline.services import Services
from reticent_server.web.routing import pages_router
from reticent_server.web.tables import shown
from reticent_server.web.visits import Visit, posted_for
from reticent_server.web.words import plain_words

router = pages_router("console")

Publishing = Annotated[Visit, Depends(posted_for(Act.PROFILE))]

_SHOWN = (0.05, 0.25, 0.5, 0.75, 0.95)
_DONE = {"policy": "The policy is set.", "profile": "The profile is released."}


@dataclass(frozen=True, slots=True)
class AccountRow:
    """An account for a template. share: of its cap that is spent. row: as the command line shows
    it. place: the page about whose it is.
    """

    balance: Balance
    whose: str
    share: float
    row: dict[str, str]
    place: str

    @property
    def anchor(self) -> str:
        """The id of the row in its page, to which links lead."""
        return f"account-{self.balance.account}"


def account(services: Services, balance: Balance) -> AccountRow:
    """A balance with what the templates show of it."""
    whose = oversight.whose(services, balance)
    shared = {project.id for project in services.projects.all()}
    own = f"/console/analysts/{quote(whose)}"
    place = "/console/projects" if balance.analyst_id in shared else own
    return AccountRow(balance, whose, share_of_epsilon(balance), account_row(balance), place)


def chart(services: Services, balance: Balance | None) -> BurnDown | None:
    """The burn-down chart of an account."""
    if balance is None:
        return None
    return burn_down(history(services, balance), services.clock.now())


@router.get("")
@router.get("/")
def overview(visit: Signed) -> Response:
    """Every data set, its cap, and what wants attention."""
    services = visit.services
    caps = {b.population: b for b in services.ledger.all_balances() if b.analyst_id is None}
    rows = [
        {"facts": facts, "cap": account(services, caps[facts.population])}
        if facts.population in caps
        else {"facts": facts, "cap": None}
        for facts in services.catalog.list()
    ]
    return visit.page("overview.html", rows=rows)


@dataclass(frozen=True, slots=True)
class PageProblem:
    """Why a form of a page was refused. form: which one."""

    form: str
    error: ReticentError


@router.get("/populations/{name}")
def population(visit: Signed, name: str) -> Response:
    """One population: its unit, its places, and what is loaded of it."""
    catalog = visit.services.catalog
    known = catalog.population(name)
    if not known.is_made:
        raise NotFound("There is no such population.")
    return visit.page(
        "population.html",
        population=known,
        second_person=catalog.asks_for_second(name),
        living=[facts.name for facts in catalog.list() if facts.population == name],
    )


@router.get("/datasets/{name}")
def dataset(visit: Signed, name: str) -> Response:
    """One data set: what is public, its cap, and who has spent what."""
    return dataset_page(visit, name)


def dataset_page(
    visit: Visit,
    name: str,
    problem: PageProblem | None = None,
    expected: Mapping[str, Any] | None = None,
) -> Response:
    """The page, with what is wrong beside the form that was sent. expected: the forecast of a
    profile.
    """
    services = visit.services
    facts = services.catalog.facts(name)
    cap = services.ledger.population_balance(facts.population)
    balances = [b for b in services.ledger.all_balances() if b.population == facts.population]
    return visit.page(
        "dataset.html",
        problem.error.status if problem else 200,
        problem=problem,
        given=visit.fields if problem or expected else {},
        expected=expected,
        unresolved=unresolved(facts),
        done=_DONE.get(visit.request.query_params.get("done", ""), ""),
        tiers=TIERS,
        facts=facts,
        cap=None if cap is None else account(services, cap),
        chart=chart(services, cap),
        analysts=[account(services, b) for b in balances if b.analyst_id is not None],
        curators_own=_curators_own(services, cap),
        columns=[_column(facts, column) for column in facts.schema.columns],
        shown=[f"{p:.0%}" for p in _SHOWN],
        rows=oversight.account_trail(services, cap) if cap else (),
        protocols=[one for one in services.protocols.all() if one.dataset == facts.name],
    )


def _curators_own(services: Services, cap: Balance | None) -> float:
    """The share of the cap that profiles have spent."""
    if cap is None:
        return 0.0
    entries = services.ledger.entries(cap.account, HISTORY)
    own = [e.draft for e in entries if e.draft.actor == "curator" and e.draft.action == "debit"]
    return share_of_epsilon(cap, sum((draft.change for draft in own), start=Amounts(0, 0)))


def _column(facts: DatasetFacts, column: Column) -> dict[str, Any]:
    known = facts.profile.columns.get(column.name) if facts.profile else None
    quantiles = {} if known is None else known.known_quantiles()
    by_level = known is not None and not known.quantiles  # of numbers, quantiles say more
    counts = known.counted(column) if known is not None and by_level else {}
    return {
        "name": column.name,
        "label": column.label,
        "kind": f"{column.shown_kind}, {column.role}" if column.role else column.shown_kind,
        "domain": ", ".join(column.levels)
        or f"{column.shown(column.lower)} … {column.shown(column.upper)}",
        "quantiles": [_quantile(column, quantiles.get(p)) for p in _SHOWN],
        "counts": counts,
        "missing": known and known.missing,
    }


def _quantile(column: Column, value: float | None) -> float | str | None:
    """A released number, or a date as one."""
    return value if value is None or not column.is_date else column.shown(value)


@router.get("/releases/{release_id}")
def release(visit: Signed, release_id: str) -> Response:
    """One release: what was asked, what it cost, and what is promised, in plain words."""
    found = oversight.release(visit.services, release_id)
    document = found.document
    return visit.page(
        "release.html",
        release=document,
        owner=found.owner,
        words=plain_words(document["guarantee"]),
        cap=_cap_of(visit.services, found),
        result=None if document["result"] is None else shown(document["result"]),
        rows=found.entries,
        published=document["id"] in visit.services.catalog.published(document["dataset"]),
    )


@router.post("/releases/{release_id}/publish")
def publish(visit: Publishing, release_id: str) -> Response:
    """Shows the release to all analysts with a grant, for ever, where that was confirmed."""
    if visit.fields.get("sure") != "yes":
        raise InvalidRequest("Tick the box to publish the release: this cannot be undone.")
    publishing.publish(visit.services, release_id, by=visit.actor)
    return visit.redirect(f"/console/releases/{quote(release_id)}")


def _cap_of(services: Services, shown: oversight.ShownRelease) -> AccountRow | None:
    """The cap that the release was charged to."""
    populations = {b.population: b for b in services.ledger.all_balances() if not b.analyst_id}
    for row in shown.entries:
        if row.whose == oversight.EVERYBODY and row.about in populations:
            return account(services, populations[row.about])
    return None
