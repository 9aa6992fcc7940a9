# SPDX-License-Identifier: Apache-2.0
"""`reticent budget …`: caps over all analysts, analysts' budgets, and credits."""

from typing import Annotated, Any

import typer

from reticent_server.cli.common import (
    JsonFlag,
    QueryDeltaOption,
    RuleOption,
    command,
    err,
    print_json,
    show,
    user,
)
from reticent_server.domain.roles import Act
from reticent_server.errors import InvalidRequest
from reticent_server.ledger.model import Balance
from reticent_server.opening import open_books
from reticent_server.pipeline.accounts import account_json, account_row
from reticent_server.pipeline.books import Books
from reticent_server.pipeline.budgets import (
    NO_CAP,
    BudgetChange,
    account_of,
    balance_of,
    has_cap,
)
from reticent_server.pipeline.budgets import credit as give_back
from reticent_server.pipeline.budgets import freeze as freeze_account
from reticent_server.pipeline.budgets import set_budget as set_account
from reticent_server.settings import Settings

app = typer.Typer(help="Set, show and credit privacy budgets.", no_args_is_help=True)

Dataset = Annotated[str, typer.Option("--dataset", help="The data set's name.")]
AnalystName = Annotated[
    str | None,
    typer.Option("--analyst", help="The analyst's name; without it, the cap over all analysts."),
]


ProjectName = Annotated[str | None, typer.Option("--project", help="The name of a shared project.")]


@app.command("set")
@command(Act.SET_BUDGETS)
def set_budget(
    dataset: Dataset,
    epsilon: Annotated[float, typer.Option(help="Total epsilon.")],
    delta: Annotated[float, typer.Option(help="Total delta.")],
    analyst: AnalystName = None,
    project: ProjectName = None,
    rule: RuleOption = None,
    query_delta: QueryDeltaOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Set a budget. Without --analyst and --project: the cap over all analysts of the population;
    with one, also the grant to ask about the data set.
    """
    books = open_books(Settings())
    offer = BudgetChange(epsilon, delta, rule.value if rule else None, user(), query_delta)
    balance = set_account(books, dataset, analyst, offer, project=project)
    if not has_cap(books, balance):
        err.print(f"{NO_CAP} Set it with `budget set` without --analyst.")
    _show(books, [balance], as_json=as_json)


@app.command("show")
@command(Act.LOOK)
def show_budgets(
    dataset: Annotated[str | None, typer.Option(help="Only accounts of this data set.")] = None,
    analyst: Annotated[str | None, typer.Option(help="Only this analyst's accounts.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show every account: the caps over all analysts, and the analysts' budgets; of an older copy
    that must not be served, too.
    """
    books = open_books(Settings(), older=True)
    balances = list(books.ledger.all_balances())
    if analyst is not None:
        analyst_id = books.access.analyst(analyst).id
        balances = [b for b in balances if b.analyst_id == analyst_id]
    if dataset is not None:
        population = books.catalog.facts(dataset).population
        balances = [
            b for b in balances if (b.dataset or dataset, b.population) == (dataset, population)
        ]
    _show(books, balances, as_json=as_json)


@app.command()
@command(Act.SET_BUDGETS)
def credit(
    *,
    dataset: Dataset,
    reason: Annotated[str, typer.Option(help="Why; it is kept in the ledger.")],
    analyst: AnalystName = None,
    project: ProjectName = None,
    epsilon: Annotated[float, typer.Option(help="For accounts under the rule basic.")] = 0.0,
    delta: Annotated[float, typer.Option(help="For every rule.")] = 0.0,
    rho: Annotated[float, typer.Option(help="For accounts under the rules zcdp and gdp.")] = 0.0,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Subtract an amount from what is spent, for charges whose answers nobody can have seen."""
    books = open_books(Settings())
    account = account_of(books, dataset, analyst, project)
    rule = balance_of(books, account).rule
    other, primary = (rho, epsilon) if rule == "basic" else (epsilon, rho)
    if other:
        raise InvalidRequest("Credit --epsilon under the rule basic, and --rho under zcdp and gdp.")
    if not yes:
        question = (
            f"Subtract {primary:g} ({'ε' if rule == 'basic' else 'ρ'}) and δ {delta:g} from what "
            "is spent?"
        )
        typer.confirm(f"{question} An entry is never deleted.", abort=True, err=True)
    credited = give_back(books, account, primary, delta, reason=reason, by=user())
    _show(books, [credited], as_json=as_json)


@app.command()
@command(Act.SET_BUDGETS)
def freeze(
    *,
    dataset: Dataset,
    reason: Annotated[str, typer.Option(help="Why; it is kept in the ledger.")],
    analyst: AnalystName = None,
    project: ProjectName = None,
    as_json: JsonFlag = False,
) -> None:
    """Count all that is left of an account as spent; without --analyst and --project, of the cap
    over all analysts. Nothing more is answered from it until its cap is raised.
    """
    books = open_books(Settings())
    frozen = freeze_account(books, dataset, analyst, project, reason=reason, by=user())
    _show(books, [frozen], as_json=as_json)


def _show(books: Books, balances: list[Balance], *, as_json: bool) -> None:
    names = books.names()
    if as_json:
        print_json([_document(balance, names) for balance in balances])
    else:
        show([account_line(balance, names) for balance in balances], as_json=False)


def _document(balance: Balance, names: dict[str, str]) -> dict[str, Any]:
    analyst = None if balance.analyst_id is None else names.get(balance.analyst_id)
    named = {"account": balance.account, "analyst": analyst, "population": balance.population}
    return named | account_json(balance)


def account_line(balance: Balance, names: dict[str, str]) -> dict[str, Any]:
    """An account as a line of a table: whose it is, and what is spent and left."""
    holder = {
        "analyst": "(all)" if balance.analyst_id is None else names.get(balance.analyst_id),
        "data set": balance.dataset or f"population {balance.population}",
    }
    return holder | account_row(balance)
