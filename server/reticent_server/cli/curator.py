# SPDX-License-Identifier: Apache-2.0
"""`reticent curator …`: the staff, what they may do, and their keys."""

from typing import Annotated

import typer

from reticent_server.cli.analyst import (
    DropOld,
    ExpiresDays,
    Yes,
    expiry,
    link_holder,
    print_key,
    revoke_holder,
    rotate_holder,
    tell,
    unlink_holder,
)
from reticent_server.cli.common import JsonFlag, command, err, minute, show, user
from reticent_server.cli.identity import (
    Email,
    Subject,
    documents,
    identity_of,
    needed_identity,
    told_without_key,
)
from reticent_server.domain.roles import LEAST, Act, Role, parse_roles
from reticent_server.errors import InvalidRequest, NotFound
from reticent_server.opening import open_books
from reticent_server.pipeline.books import Books
from reticent_server.settings import Settings

app = typer.Typer(
    help="Add curators, budget officers, auditors and operators.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(help="The curator's name.")]

Roles = Annotated[
    list[str] | None,
    typer.Option("--role", help="curator, budget_officer, auditor or operator; may be repeated."),
]


@app.command()
@command(Act.INSTALL)
def add(
    name: Name,
    role: Roles = None,
    expires_days: ExpiresDays = None,
    oidc_subject: Subject = None,
    oidc_email: Email = None,
    as_json: JsonFlag = False,
) -> None:
    """Add somebody of the staff and print the key, once; or, without a key, link an identity at the
    provider. Without --role the key reads metrics only."""
    settings = Settings()
    books = open_books(settings)
    roles = parse_roles(role or LEAST)
    identity = identity_of(settings, oidc_subject, oidc_email)
    if identity is not None and expires_days is not None:
        raise InvalidRequest("There is no key that could end: leave out --expires-days.")
    if identity is not None:
        added = books.access.add_linked(name, identity, roles, by=user())
        told_without_key(name, added, as_json=as_json)
        return
    expires_at = expiry(books.clock, expires_days)
    key = books.access.add_curator(name, roles, by=user(), expires_at=expires_at)
    if not as_json:
        err.print(f"{name} has {_in_words(roles)}.", markup=False)
    print_key({"name": name, "key": key}, as_json=as_json)


@app.command()
@command(Act.INSTALL)
def link(
    name: Name, oidc_subject: Subject = None, oidc_email: Email = None, as_json: JsonFlag = False
) -> None:
    """Link somebody of the staff with an identity at the identity provider; keys stay as they
    are.
    """
    identity = needed_identity(oidc_subject, oidc_email)
    link_holder(_with_curator(name), name, identity, as_json=as_json)


@app.command()
@command(Act.INSTALL)
def unlink(name: Name, as_json: JsonFlag = False) -> None:
    """End every link of somebody of the staff with the identity provider; keys stay as they are."""
    unlink_holder(_with_curator(name), name, as_json=as_json)


@app.command("roles")
@command(Act.INSTALL)
def set_roles(name: Name, role: Roles = None, as_json: JsonFlag = False) -> None:
    """Give somebody of the staff other roles, at once, for every key and session."""
    roles = parse_roles(role or ())
    _with_curator(name).access.set_roles(name, roles, by=user())
    told: dict[str, object] = {"name": name, "roles": sorted(roles)}
    tell(f"{name} has {_in_words(roles)}.", told, as_json=as_json)


def _in_words(roles: frozenset[Role]) -> str:
    names = ", ".join(sorted(role.replace("_", " ") for role in roles))
    return f"the role{'s' if len(roles) > 1 else ''} {names}"


@app.command("list")
@command(Act.LOOK)
def list_curators(as_json: JsonFlag = False) -> None:
    """List all curators, with their live keys."""
    books = open_books(Settings())
    rows = [
        {
            "name": c.name,
            "live_keys" if as_json else "live keys": c.live_keys,
            "roles": sorted(c.roles) if as_json else ", ".join(sorted(c.roles)),
            "revoked": c.revoked,
            "added": c.created_at if as_json else minute(c.created_at),
        }
        | ({"identities": documents(books, c.id)} if as_json else {})
        for c in books.access.curators()
    ]
    show(rows, as_json=as_json)


@app.command()
@command(Act.INSTALL)
def rotate_key(
    name: Name,
    drop_old: DropOld = False,
    yes: Yes = False,
    expires_days: ExpiresDays = None,
    as_json: JsonFlag = False,
) -> None:
    """Print a new key; of the old ones, the newest stays live until the next rotation."""
    books = _with_curator(name)
    rotate_holder(
        books, name, drop_old=drop_old, yes=yes, expires_days=expires_days, as_json=as_json
    )


@app.command()
@command(Act.INSTALL)
def revoke(name: Name, yes: Yes = False, as_json: JsonFlag = False) -> None:
    """End a curator's access to the server at once and for good."""
    revoke_holder(_with_curator(name).access, name, yes=yes, as_json=as_json)


@app.command()
@command(Act.INSTALL)
def sign_out(name: Name, as_json: JsonFlag = False) -> None:
    """End every session of a curator in the console at once; keys stay as they are."""
    ended = _with_curator(name).sign_ins.end_all(name, by=user())
    tell(f"{ended} sessions of {name} are ended.", {"name": name, "ended": ended}, as_json=as_json)


def _with_curator(name: str) -> Books:
    books = open_books(Settings())
    if name not in {curator.name for curator in books.access.curators()}:
        raise NotFound("There is no curator of that name.")
    return books
