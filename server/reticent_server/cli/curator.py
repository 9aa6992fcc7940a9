"""`reticent curator …`: keys for the curator's own use of the server."""

from typing import Annotated

import typer

from reticent_server.app import build_services
from reticent_server.cli.analyst import (
    DropOld,
    ExpiresDays,
    Yes,
    expiry,
    print_key,
    revoke_holder,
    rotate_holder,
    tell,
)
from reticent_server.cli.common import JsonFlag, minute, one_line_errors, show, user
from reticent_server.errors import NotFound
from reticent_server.pipeline.services import Services
from reticent_server.settings import Settings

app = typer.Typer(help="Add curators and manage their keys.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The curator's name.")]


@app.command()
@one_line_errors
def add(name: Name, expires_days: ExpiresDays = None, as_json: JsonFlag = False) -> None:
    """Add a curator and print the key, once."""
    services = build_services(Settings())
    expires_at = expiry(services.clock, expires_days)
    key = services.access.add_curator(name, by=user(), expires_at=expires_at)
    print_key({"name": name, "key": key}, as_json=as_json)


@app.command("list")
@one_line_errors
def list_curators(as_json: JsonFlag = False) -> None:
    """List all curators, with their live keys."""
    rows = [
        {
            "name": c.name,
            "live_keys" if as_json else "live keys": c.live_keys,
            "revoked": c.revoked,
            "added": c.created_at if as_json else minute(c.created_at),
        }
        for c in build_services(Settings()).access.curators()
    ]
    show(rows, as_json=as_json)


@app.command()
@one_line_errors
def rotate_key(
    name: Name,
    drop_old: DropOld = False,
    yes: Yes = False,
    expires_days: ExpiresDays = None,
    as_json: JsonFlag = False,
) -> None:
    """Print a new key; of the old ones, the newest stays live until the next rotation."""
    services = _with_curator(name)
    rotate_holder(
        services, name, drop_old=drop_old, yes=yes, expires_days=expires_days, as_json=as_json
    )


@app.command()
@one_line_errors
def revoke(name: Name, yes: Yes = False, as_json: JsonFlag = False) -> None:
    """End a curator's access to the server at once and for good."""
    revoke_holder(_with_curator(name).access, name, yes=yes, as_json=as_json)


@app.command()
@one_line_errors
def sign_out(name: Name, as_json: JsonFlag = False) -> None:
    """End every session of a curator in the console at once; keys stay as they are."""
    ended = _with_curator(name).sign_ins.end_all(name, by=user())
    tell(f"{ended} sessions of {name} are ended.", {"name": name, "ended": ended}, as_json=as_json)


def _with_curator(name: str) -> Services:
    services = build_services(Settings())
    if name not in {curator.name for curator in services.access.curators()}:
        raise NotFound("There is no curator of that name.")
    return services
