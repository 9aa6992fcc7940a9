# SPDX-License-Identifier: Apache-2.0
"""`reticent analyst …`: who may ask, and their keys."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated

import typer

from reticent_server.access.identity_rows import Identity
from reticent_server.access.service import Access, Analyst
from reticent_server.cli.common import (
    JsonFlag,
    QueryDeltaOption,
    RuleName,
    RuleOption,
    command,
    err,
    minute,
    print_json,
    require,
    show,
    user,
)
from reticent_server.cli.identity import (
    Email,
    Subject,
    documents,
    identity_of,
    needed_identity,
    told_without_key,
)
from reticent_server.domain.clock import Clock
from reticent_server.domain.roles import Act
from reticent_server.errors import InvalidRequest, NotFound
from reticent_server.opening import open_books
from reticent_server.pipeline.books import Books
from reticent_server.pipeline.budgets import NO_CAP, BudgetChange, check_offer, has_cap, set_budget
from reticent_server.settings import Settings

app = typer.Typer(help="Add analysts and manage their keys.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The analyst's name.")]
DropOld = Annotated[bool, typer.Option("--drop-old", help="End all old keys now (one has leaked).")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
ExpiresDays = Annotated[
    int | None, typer.Option(min=1, max=36_500, help="Days after which the key ends.")
]


@app.command()
@command(Act.MANAGE_ANALYSTS)
def add(
    name: Name,
    *,
    dataset: Annotated[
        str | None, typer.Option(help="Also set a budget for this data set, and grant it.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="Total epsilon of that budget.")] = None,
    delta: Annotated[float | None, typer.Option(help="Total delta of that budget.")] = None,
    rule: RuleOption = None,
    query_delta: QueryDeltaOption = None,
    expires_days: ExpiresDays = None,
    oidc_subject: Subject = None,
    oidc_email: Email = None,
    as_json: JsonFlag = False,
) -> None:
    """Add an analyst and print the key, once; or, without a key, link an identity at the
    provider.
    """
    settings = Settings()
    books = open_books(settings)
    identity = identity_of(settings, oidc_subject, oidc_email)
    if identity is not None and expires_days is not None:
        raise InvalidRequest("There is no key that could end: leave out --expires-days.")
    offer = _offer(dataset, epsilon, delta, rule, query_delta)
    if dataset is not None and offer is not None:
        require(Act.SET_BUDGETS)
        check_offer(books, dataset, offer)  # before there is a key that nobody would see
    if identity is None:
        expires_at = expiry(books.clock, expires_days)
        analyst_id, key = books.access.add_analyst(name, by=user(), expires_at=expires_at)
        print_key({"id": analyst_id, "name": name, "key": key}, as_json=as_json)
    else:
        analyst_id = books.access.add_linked(name, identity, by=user())
        told_without_key(name, analyst_id, as_json=as_json)
    if dataset is not None and offer is not None:
        balance = set_budget(books, dataset, name, offer)
        if not has_cap(books, balance):
            err.print(NO_CAP)


def _offer(
    dataset: str | None,
    epsilon: float | None,
    delta: float | None,
    rule: RuleName | None,
    query_delta: float | None,
) -> BudgetChange | None:
    """The budget of the options: all of them, or none. Raises InvalidRequest."""
    if all(option is None for option in (dataset, epsilon, delta, rule, query_delta)):
        return None
    if dataset is None or epsilon is None or delta is None:
        raise InvalidRequest("A budget needs --dataset, --epsilon and --delta.")
    return BudgetChange(epsilon, delta, rule.value if rule else None, user(), query_delta)


@app.command()
@command(Act.MANAGE_ANALYSTS)
def link(
    name: Name, oidc_subject: Subject = None, oidc_email: Email = None, as_json: JsonFlag = False
) -> None:
    """Link an analyst with an identity at the identity provider; keys stay as they are."""
    books = open_books(Settings())
    books.access.analyst(name)
    link_holder(books, name, needed_identity(oidc_subject, oidc_email), as_json=as_json)


@app.command()
@command(Act.MANAGE_ANALYSTS)
def unlink(name: Name, as_json: JsonFlag = False) -> None:
    """End every link of an analyst with the identity provider at once; keys stay as they are."""
    books = open_books(Settings())
    books.access.analyst(name)
    unlink_holder(books, name, as_json=as_json)


@app.command("list")
@command(Act.LOOK)
def list_analysts(as_json: JsonFlag = False) -> None:
    """List all analysts, with their data sets and live keys."""
    books = open_books(Settings())
    access = books.access
    if as_json:
        print_json([_document(books, analyst) for analyst in access.analysts()])
        return
    rows = [
        {
            "name": analyst.name,
            "data sets": ", ".join(access.grants(analyst.id)),
            "live keys": analyst.live_keys,
            "revoked": analyst.revoked,
            "added": minute(analyst.created_at),
        }
        for analyst in access.analysts()
    ]
    show(rows, as_json=False)


def _document(books: Books, analyst: Analyst) -> dict[str, object]:
    return {
        "name": analyst.name,
        "id": analyst.id,
        "datasets": list(books.access.grants(analyst.id)),
        "identities": documents(books, analyst.id),
        "live_keys": analyst.live_keys,
        "revoked": analyst.revoked,
        "added": analyst.created_at,
    }


@app.command()
@command(Act.MANAGE_ANALYSTS)
def rotate_key(
    name: Name,
    drop_old: DropOld = False,
    yes: Yes = False,
    expires_days: ExpiresDays = None,
    as_json: JsonFlag = False,
) -> None:
    """Print a new key; of the old ones, the newest stays live until the next rotation."""
    books = open_books(Settings())
    books.access.analyst(name)
    rotate_holder(
        books, name, drop_old=drop_old, yes=yes, expires_days=expires_days, as_json=as_json
    )


@app.command()
@command(Act.MANAGE_ANALYSTS)
def revoke(
    name: Name,
    dataset: Annotated[
        str | None, typer.Option(help="Take back the grant for this data set only.")
    ] = None,
    yes: Yes = False,
    as_json: JsonFlag = False,
) -> None:
    """End an analyst's access at once and for good, or the grant for one data set (until a budget
    is set again). What was spent stays spent."""
    access = open_books(Settings()).access
    analyst = access.analyst(name)
    if dataset is None:
        revoke_holder(access, name, yes=yes, as_json=as_json)
        return
    if dataset not in access.grants(analyst.id):
        raise NotFound(f"{name} has no grant for that data set.")
    access.revoke_grant(analyst.id, dataset, by=user())
    told = {"name": name, "dataset": dataset, "revoked": True}
    tell(f"{name} may no longer ask about {dataset}.", told, as_json=as_json)


def revoke_holder(access: Access, name: str, *, yes: bool, as_json: bool) -> None:
    """Asks, then ends every key of an analyst or curator."""
    if not yes:
        typer.confirm(f"Revoke {name}, for good?", abort=True, err=True)
    access.revoke(name, by=user())
    tell(f"{name} is revoked.", {"name": name, "revoked": True}, as_json=as_json)


def link_holder(books: Books, name: str, identity: Identity, *, as_json: bool) -> None:
    """Links an analyst or one of the staff."""
    books.identities.link(name, identity, by=user())
    told = {"name": name, "claim": identity.claim, "value": identity.value}
    tell(f"{name} may sign in at the identity provider.", told, as_json=as_json)


def unlink_holder(books: Books, name: str, *, as_json: bool) -> None:
    """Ends the links of an analyst or of one of the staff."""
    ended = books.identities.unlink(name, by=user())
    told = {"name": name, "ended": ended}
    tell(f"{ended} links of {name} are ended.", told, as_json=as_json)


def tell(sentence: str, row: Mapping[str, object], *, as_json: bool) -> None:
    """What was done: a sentence on standard error, or JSON."""
    if as_json:
        print_json(row)
    else:
        err.print(sentence, markup=False)


def rotate_holder(
    books: Books,
    name: str,
    *,
    drop_old: bool,
    yes: bool,
    expires_days: int | None,
    as_json: bool,
) -> None:
    """A new key for an analyst or curator; asks before all old ones end."""
    if drop_old and not yes:
        typer.confirm(f"End all old keys of {name} now?", abort=True, err=True)
    expires_at = expiry(books.clock, expires_days)
    key = books.access.rotate(name, by=user(), drop_old=drop_old, expires_at=expires_at)
    print_key({"name": name, "key": key}, as_json=as_json)


def expiry(clock: Clock, days: int | None) -> datetime | None:
    """The time in so many days."""
    return None if days is None else clock.now() + timedelta(days=days)


def print_key(row: dict[str, str], *, as_json: bool) -> None:
    """The key alone on standard output, so that it can be piped; words on standard error."""
    if as_json:
        print_json(row)
        return
    err.print(f"Key of {row['name']}; it is shown this once and stored nowhere:", markup=False)
    typer.echo(row["key"])
