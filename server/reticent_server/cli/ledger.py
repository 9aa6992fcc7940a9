# SPDX-License-Identifier: Apache-2.0
"""`reticent ledger …`: the chain of entries: shown, verified, anchored, exported."""

from typing import Annotated, Any

import typer

from reticent_server.chain.anchors import Anchors
from reticent_server.chain.entries import Entry, entry_row
from reticent_server.cli.budget import account_line
from reticent_server.cli.common import JsonFlag, command, err, print_json, show, user, waiting
from reticent_server.domain.amounts import UNITS
from reticent_server.domain.roles import Act
from reticent_server.errors import CuratorError
from reticent_server.ledger.model import Balance
from reticent_server.opening import anchors_of, open_books, open_ledger
from reticent_server.pipeline.budgets import accept_rollback as accept
from reticent_server.settings import Settings

app = typer.Typer(help="Show, verify, anchor and export the ledger.", no_args_is_help=True)


@app.command("show")
@command(Act.LOOK)
def show_entries(
    account: Annotated[
        str | None, typer.Option(help="Only this account (ids: `budget show --json`).")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many, the newest.")] = 30,
    as_json: JsonFlag = False,
) -> None:
    """Show the last entries, oldest first."""
    books = open_books(Settings(), older=True)
    entries = books.ledger.entries(account, limit)[::-1]
    if as_json:
        print_json([entry_row(e.seq, e.draft) | {"hash": e.hash} for e in entries])
        return
    names = books.names()
    accounts = {b.account: b for b in books.ledger.all_balances()}
    rows = [_row(entry, accounts.get(entry.draft.account or ""), names) for entry in entries]
    show(rows, as_json=False)


def _row(entry: Entry, account: Balance | None, names: dict[str, str]) -> dict[str, Any]:
    draft = entry.draft
    told = {
        "seq": entry.seq,
        "time": (draft.at or "")[:16].replace("T", " "),
        "action": draft.action,
        "by": names.get(draft.actor, draft.actor),
    }
    if account is None:
        return told | {"analyst": "", "data set": "", "change": None, "about": draft.subject}
    ((unit, _), _) = UNITS[account.rule]
    change = draft.change.floats(account.rule)[unit]
    return told | {
        "analyst": names.get(account.analyst_id or "", "(all)"),
        "data set": account.dataset or f"population {account.population}",
        "change": f"{unit} {change:+g}" if change else None,
        "about": draft.release_id or draft.detail.get("reason"),
    }


@app.command()
@command(Act.LOOK)
def verify(
    head: Annotated[
        str | None, typer.Option(help="A head that was printed before; it must be in the chain.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Recompute every hash, balance and release, and compare every row of access and catalogue;
    exit status 1 and words if something is wrong. Every head in RETICENT_ANCHOR_FILE must be in the
    chain.
    """
    settings = Settings()
    ledger = open_ledger(settings)
    heads = [anchor.hash for anchor in anchors_of(settings)] + ([head] if head else [])
    with waiting("Verifying the ledger"):
        problems = ledger.verify(*heads)
    if as_json:
        print_json({"ok": not problems, "problems": problems, "head": ledger.head()})
    else:
        for problem in problems:
            err.print(problem, markup=False)
        if not problems:
            typer.echo(f"The ledger is as its entries say. Head: {ledger.head()}")
    if problems:
        raise typer.Exit(1)


@app.command("head")
@command(Act.LOOK)
def print_head(as_json: JsonFlag = False) -> None:
    """Print the hash of the last entry, to be kept elsewhere."""
    head = open_ledger(Settings()).head()
    if as_json:
        print_json({"head": head})
    else:
        typer.echo(head)


@app.command()
@command(Act.EXPORT)
def export(
    as_json: JsonFlag = False,  # noqa: ARG001  (the lines are JSON in any case)
) -> None:
    """Print the chain as JSON lines; nothing in it is private."""
    for line in open_ledger(Settings()).export():
        typer.echo(line)


@app.command("accept-rollback")
@command(Act.SET_BUDGETS)
def accept_rollback(
    reason: Annotated[str, typer.Option(help="Why no newer copy exists; kept in the ledger.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Let an older copy of the ledger be served. What was spent after the copy was made is not in
    it, so all that any budget has left counts as spent, for good.
    """
    settings = Settings()
    if settings.anchor_file is None:
        raise CuratorError(
            "RETICENT_ANCHOR_FILE is not set, so nothing here knows what is missing. If you know "
            "that this is an older copy, use `reticent budget freeze` for each data set."
        )
    if not yes:
        question = "Count all that is left of every budget as spent? That cannot be undone."
        typer.confirm(question, abort=True, err=True)
    books = open_books(settings, older=True)
    frozen = accept(books, Anchors(settings.anchor_file), reason=reason, by=user())
    names = books.names()
    show([account_line(balance, names) for balance in frozen], as_json=as_json)
