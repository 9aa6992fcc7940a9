# SPDX-License-Identifier: Apache-2.0
"""`reticent population …`: add, widen, list and show. What reads private cells is imported by the
commands that do.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from reticent_server.catalog.populations import Population
from reticent_server.cli.common import JsonFlag, command, print_json, show, user
from reticent_server.domain.roles import Act
from reticent_server.errors import NotFound
from reticent_server.opening import open_approvals, open_catalog
from reticent_server.settings import Settings

app = typer.Typer(help="Make populations and declare their places.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The population's name.")]


@app.command()
@command(Act.LOAD)
def add(
    name: Name,
    *,
    column: Annotated[
        str | None, typer.Option(help="The column that names persons; without it, rows.")
    ] = None,
    register: Annotated[
        Path | None,
        typer.Option(help="A CSV or Parquet file with every person's identifier, once."),
    ] = None,
    capacity: Annotated[
        int | None, typer.Option(help="A number of places, which persons take as they come.")
    ] = None,
    table: Annotated[
        str | None, typer.Option(help="A data set of it, loaded earlier, whose persons are all.")
    ] = None,
    overlap_reason: Annotated[
        str | None,
        typer.Option(help="Why it is kept separate from others; for curators alone."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Make a population, or declare the places of one whose tables were loaded earlier."""
    from reticent_server.intake.registers import Asked, add_population  # noqa: PLC0415

    settings = Settings()
    asked = Asked(name, column, register, capacity, table, overlap_reason)
    with open_catalog(settings) as catalog, open_approvals(settings) as approvals:
        made = add_population(settings, catalog, approvals, asked, by=user())
    show([_row(made)], as_json=as_json)


@app.command()
@command(Act.LOAD)
def renew(
    name: Name,
    *,
    reason: Annotated[str, typer.Option(help="Why; it is kept in the ledger.")],
    register: Annotated[
        Path | None,
        typer.Option(help="A CSV or Parquet file with every person's identifier, once."),
    ] = None,
    capacity: Annotated[
        int | None, typer.Option(help="A number of places, which persons take as they come.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Declare a population's places anew, where the vault or the key that knew its persons is lost.
    Its budget stays what it is; load its tables again afterwards.
    """
    from reticent_server.intake.registers import Asked, add_population  # noqa: PLC0415

    settings = Settings()
    asked = Asked(name, register=register, capacity=capacity, instead=reason)
    with open_catalog(settings) as catalog, open_approvals(settings) as approvals:
        made = add_population(settings, catalog, approvals, asked, by=user())
    show([_row(made)], as_json=as_json)


@app.command()
@command(Act.LOAD)
def widen(
    name: Name,
    capacity: Annotated[int, typer.Option(help="The number of places, more than there are.")],
    as_json: JsonFlag = False,
) -> None:
    """Declare more places: whoever has one keeps it, and who comes later takes a free one."""
    from reticent_server.intake.registers import widen as widen_population  # noqa: PLC0415

    settings = Settings()
    with open_catalog(settings) as catalog, open_approvals(settings) as approvals:
        made = widen_population(catalog, approvals, name, capacity, by=user())
    show([_row(made)], as_json=as_json)


@app.command("list")
@command(Act.LOOK)
def list_populations(as_json: JsonFlag = False) -> None:
    """List the populations."""
    with open_catalog(Settings()) as catalog:
        show([_row(each) for each in catalog.populations()], as_json=as_json)


@app.command("show")
@command(Act.LOOK)
def show_population(name: Name, as_json: JsonFlag = False) -> None:
    """Show a population: its unit, its places, its data sets."""
    with open_catalog(Settings()) as catalog:
        known, second = catalog.population(name), catalog.asks_for_second(name)
    if not known.is_made:
        raise NotFound("There is no such population.")
    row = _row(known) | {"second_person": second, "overlap_reason": known.separate or None}
    if as_json:
        print_json(row)
    else:
        show([row], as_json=False)


def _row(population: Population) -> dict[str, Any]:
    spine = population.spine
    return {
        "population": population.name,
        "unit": population.unit_words,
        "places": None if spine is None else spine.n,
        "spine": population.spine_words,
        "datasets": ", ".join(population.datasets),
    }
