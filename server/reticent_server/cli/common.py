# SPDX-License-Identifier: Apache-2.0
"""What every curator's command shares: settings, output, and one line for an error."""

import getpass
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from reticent_server.database import disposing
from reticent_server.domain.principal import Principal
from reticent_server.domain.roles import Act
from reticent_server.errors import (
    CuratorError,
    NotFound,
    PolicyRefused,
    ReticentError,
    Unauthorized,
)
from reticent_server.settings import Settings

P = ParamSpec("P")
R = TypeVar("R")


class RuleName(StrEnum):
    """As `ledger.rules.Rule`, for the command line."""

    BASIC = "basic"
    ZCDP = "zcdp"
    GDP = "gdp"


RuleOption = Annotated[
    RuleName | None,
    typer.Option(help="How costs add up; fixed when the account is opened (then zcdp)."),
]
QueryDeltaOption = Annotated[
    float | None,
    typer.Option(
        "--query-delta",
        help="Of delta, what queries may be charged under the rules zcdp and gdp; the rest turns "
        "rho into epsilon. Left out: as it was, a tenth of delta for a new account.",
    ),
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]

ACTS: dict[str, Act | None] = {}
"""What each command does, by module and function."""

_holder: ContextVar[Principal | None] = ContextVar("holder", default=None)

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)

_LONGEST_KEPT = 12
_NAMES = "`reticent dataset list`, `analyst list` and `curator list` show the names."


def show(rows: Sequence[dict[str, Any]], *, as_json: bool, title: str = "") -> None:
    """Prints rows as a table, or as a JSON list."""
    if as_json:
        print_json(list(rows))
        return
    if rows and _least_width(rows) > out.width:
        _show_one_by_one(rows, title)
        return
    table = Table(title=title or None, title_justify="left")
    for name in rows[0] if rows else ("(none)",):
        table.add_column(str(name), overflow="fold", min_width=_kept(name, rows))
    for row in rows:
        table.add_row(*(_cell(v) for v in row.values()))
    out.print(table)


def _kept(name: str, rows: Sequence[dict[str, Any]]) -> int:
    """The least width of a column in which no word that is kept whole is broken."""
    cells = [name, *(_cell(row[name]) for row in rows if name in row)]
    return min(max(len(word) for cell in cells for word in f"{cell} ".split(" ")), _LONGEST_KEPT)


def _least_width(rows: Sequence[dict[str, Any]]) -> int:
    """Of a table in which no number and no short word is broken into two lines."""
    return 1 + sum(_kept(name, rows) + 3 for name in rows[0])


def _show_one_by_one(rows: Sequence[dict[str, Any]], title: str) -> None:
    """For a narrow terminal: every row as lines, so that nothing is cut off."""
    if title:
        out.print(title, markup=False)
    for row in rows:
        shown = [(name, _cell(value)) for name, value in row.items()]
        out.print("\n".join(f"{name}: {cell}" for name, cell in shown if cell) + "\n")


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
        case _:
            return escape(str(value))


def minute(at: str) -> str:
    """A stored time for a reader: to the minute."""
    return at[:16].replace("T", " ")


def print_json(value: Any) -> None:
    """Writes a value to standard output; what JSON does not know becomes its text."""
    sys.stdout.write(json.dumps(value, indent=2, default=str) + "\n")


def waiting(what: str) -> AbstractContextManager[object]:
    """Says on a terminal what takes a while, until it is done."""
    return err.status(f"{what} …") if err.is_terminal else nullcontext()


def user() -> str:
    """Who runs the command, for the ledger."""
    holder = _holder.get()
    if holder is not None:
        return f"key:{holder.name}"
    try:
        return f"cli:{getpass.getuser()}"[:80]
    except (OSError, KeyError):  # a user id without a name, as in some containers
        return "cli"


def command(act: Act | None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Makes a function a command that does `act`, which the holder of RETICENT_KEY_FILE's key must
    be allowed to do; without that setting, whoever can run it may. None: it touches no
    installation.

    A ReticentError ends it with one line on standard error and exit status 1.
    """

    def made(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                with disposing(), _acting(act):
                    return function(*args, **kwargs)
            except ReticentError as error:
                advice = f" {_NAMES}" if isinstance(error, NotFound) else ""
                err.print(f"reticent: {error.detail}{advice}", markup=False)
                raise typer.Exit(1) from None

        ACTS[f"{function.__module__}.{function.__name__}"] = act
        return wrapped

    return made


def acting() -> Principal:
    """The holder of RETICENT_KEY_FILE's key. Raises PolicyRefused where there is none."""
    holder = _holder.get()
    if holder is None:
        raise PolicyRefused("This is done by people with keys: set RETICENT_KEY_FILE.")
    return holder


def require(act: Act) -> None:
    """For a command that does more than its own act. Raises WrongRole."""
    holder = _holder.get()
    if holder is not None:
        holder.require(act)


@contextmanager
def _acting(act: Act | None) -> Iterator[None]:
    """As the holder of the key in RETICENT_KEY_FILE. Raises CuratorError, Unauthorized,
    WrongRole.
    """
    file = None if act is None else Settings().key_file
    if act is None or file is None:
        yield
        return
    holder = _authenticated(file)
    holder.require(act)
    token = _holder.set(holder)
    try:
        yield
    finally:
        _holder.reset(token)


def _authenticated(file: Path) -> Principal:
    from reticent_server.opening import open_access  # noqa: PLC0415 - most commands run without a key

    try:
        key = file.read_text("ascii", "replace").strip()
    except OSError as error:
        raise CuratorError(f"RETICENT_KEY_FILE cannot be read: {error.strerror}.") from None
    with open_access(Settings()) as access:
        holder = access.authenticate(key)
    if holder is None:
        raise Unauthorized("RETICENT_KEY_FILE holds no valid key.")
    return holder
