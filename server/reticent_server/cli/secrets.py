# SPDX-License-Identifier: Apache-2.0
"""`reticent secrets …`: the peppers under which keys are stored, and their rotation."""

from typing import Annotated

import typer

from reticent_server.access.rotation import Write
from reticent_server.access.secrets import Secrets, secrets_text
from reticent_server.cli.analyst import Yes, tell
from reticent_server.cli.common import JsonFlag, command, show, user
from reticent_server.domain.roles import Act
from reticent_server.opening import open_rotation
from reticent_server.settings import Settings

app = typer.Typer(
    help="Show and rotate the peppers that keys are stored under.", no_args_is_help=True
)

Print = Annotated[
    bool,
    typer.Option(
        "--print", help="Print the new secrets instead of writing the file: store them yourself."
    ),
]


@app.command("show")
@command(Act.INSTALL)
def show_peppers(as_json: JsonFlag = False) -> None:
    """List the peppers, and how many live keys are stored under each."""
    with open_rotation(Settings()) as rotation:
        states = rotation.states()
    rows = [
        {"pepper": p.id, "state": p.state, "keys" if as_json else "live keys": p.keys}
        for p in states
    ]
    show(rows, as_json=as_json)


@app.command()
@command(Act.INSTALL)
def rotate_pepper(
    stage: Annotated[
        bool, typer.Option("--stage", help="Only publish it; a second rotation puts it in use.")
    ] = False,
    printed: Print = False,
    as_json: JsonFlag = False,
) -> None:
    """Take a new pepper in use. No key changes for anybody: each is stored under the new pepper
    when it is used next.
    """
    with open_rotation(Settings()) as rotation:
        made = rotation.rotate(by=user(), stage=stage, write=_write(printed))
    state = "staged" if stage else "in use"
    tell(
        f"Pepper {made} is {state}.",
        {"pepper": made, "state": state},
        as_json=as_json and not printed,
    )


@app.command()
@command(Act.INSTALL)
def retire(
    pepper: Annotated[str, typer.Argument(help="Its id; `secrets show` lists them.")],
    force: Annotated[
        bool, typer.Option("--force", help="Revoke the keys that are still stored under it.")
    ] = False,
    yes: Yes = False,
    printed: Print = False,
    as_json: JsonFlag = False,
) -> None:
    """Forget an old pepper, when no live key is stored under it any more."""
    if force and not yes:
        typer.confirm(f"Revoke every key that is left on pepper {pepper}?", abort=True, err=True)
    with open_rotation(Settings()) as rotation:
        revoked = rotation.retire(pepper, by=user(), force=force, write=_write(printed))
    told = {"pepper": pepper, "state": "retired", "revoked_keys": revoked}
    tell(
        f"Pepper {pepper} is retired; {revoked} keys are revoked.",
        told,
        as_json=as_json and not printed,
    )


def _write(printed: bool) -> Write | None:
    """To standard output, where that was asked for; else where the secrets come from."""

    def write(secrets: Secrets) -> None:
        typer.echo(secrets_text(secrets))

    return write if printed else None
