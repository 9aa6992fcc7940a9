# SPDX-License-Identifier: Apache-2.0
"""`reticent project …`: what analysts have asked for, the decision, and the projects that came of
it.
"""

from dataclasses import replace
from typing import Annotated

import typer

from reticent_server.access.projects import Charter
from reticent_server.app import build_services
from reticent_server.cli.analyst import Yes, tell
from reticent_server.cli.common import JsonFlag, command, minute, print_json, show, user
from reticent_server.domain.roles import Act
from reticent_server.errors import InvalidRequest
from reticent_server.pipeline import projects
from reticent_server.pipeline.projects import Share
from reticent_server.settings import Settings

app = typer.Typer(
    help="Decide requests for projects, list and close projects.", no_args_is_help=True
)

RequestId = Annotated[str, typer.Argument(help="The request's id; `project requests` lists them.")]


@app.command("list")
@command(Act.LOOK)
def list_projects(as_json: JsonFlag = False) -> None:
    """List the projects that analysts share."""
    all_projects = build_services(Settings()).projects.all()
    if as_json:
        print_json([projects.project_json(project) for project in all_projects])
        return
    rows = [
        {
            "name": project.name,
            "members": ", ".join(name for _, name in project.members),
            "data sets": ", ".join(project.datasets),
            "last day": project.ends_on,
            "live": project.is_live,
        }
        for project in all_projects
    ]
    show(rows, as_json=False)


@app.command()
@command(Act.LOOK)
def requests(as_json: JsonFlag = False) -> None:
    """List what analysts have asked for; what waits for a decision comes first."""
    services = build_services(Settings())
    waiting = services.requests.all()
    if as_json:
        print_json([projects.request_json(request) for request in waiting])
        return
    names = {a.id: a.name for a in services.access.analysts()}
    rows = [
        {
            "id": request.id,
            "project": request.document["name"],
            "by": names.get(request.analyst_id),
            "budgets": ", ".join(
                f"{s.dataset} ({s.epsilon:g}, {s.delta:g})" for s in projects.shares_of(request)
            ),
            "queries": len(request.document["plan"]),
            "state": request.status,
            "time": minute(request.made_at),
        }
        for request in waiting
    ]
    show(rows, as_json=False)


@app.command()
@command(Act.DECIDE)
def approve(
    request_id: RequestId,
    budget: Annotated[
        list[str] | None,
        typer.Option(help="Instead of what was asked, as houses=1.5,1e-6; may be repeated."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Another name for the project.")] = None,
    ends_on: Annotated[str | None, typer.Option(help="Another last day, as 2030-12-31.")] = None,
    reason: Annotated[str, typer.Option(help="Why, where something is changed.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Make the project that a request asks for, with its budgets."""
    services = build_services(Settings())
    request = services.requests.one(request_id)
    shares = tuple(map(_share, budget)) if budget else projects.shares_of(request)
    asked = projects.wish(services, request)
    charter: Charter = replace(
        asked,
        name=name or asked.name,
        ends_on=ends_on or asked.ends_on,
        datasets=tuple(share.dataset for share in shares),
    )
    made = projects.approve(services, request, charter, shares, reason=reason, by=user())
    tell(
        f"The project {charter.name} is made.", {"id": made, "name": charter.name}, as_json=as_json
    )


@app.command()
@command(Act.DECIDE)
def refuse(
    request_id: RequestId,
    reason: Annotated[str, typer.Option(help="Why; the analyst reads it.")],
    as_json: JsonFlag = False,
) -> None:
    """Refuse a request, for a reason."""
    build_services(Settings()).projects.refuse(request_id, reason, by=user())
    tell("The request is refused.", {"id": request_id, "status": "refused"}, as_json=as_json)


@app.command()
@command(Act.DECIDE)
def close(
    name: Annotated[str, typer.Argument(help="The project's name.")],
    yes: Yes = False,
    as_json: JsonFlag = False,
) -> None:
    """End a project for good. What was spent stays spent."""
    services = build_services(Settings())
    services.projects.named(name)
    if not yes:
        typer.confirm(f"Close {name}, for good?", abort=True, err=True)
    services.projects.close(name, by=user())
    tell(f"{name} is closed.", {"name": name, "closed": True}, as_json=as_json)


@app.command()
@command(Act.DECIDE)
def remove(
    name: Annotated[str, typer.Argument(help="The project's name.")],
    member: Annotated[str | None, typer.Option(help="The analyst who leaves it.")] = None,
    dataset: Annotated[str | None, typer.Option(help="The data set that it loses.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Take one member or one data set out of a project, at once. What was spent stays spent."""
    if (member is None) == (dataset is None):
        raise InvalidRequest("Give --member or --dataset.")
    shared = build_services(Settings()).projects
    if member is not None:
        shared.remove_member(name, member, by=user())
    else:
        shared.remove_dataset(name, dataset or "", by=user())
    told = {"name": name, "removed": member or dataset}
    tell(f"{member or dataset} is taken out of {name}.", told, as_json=as_json)


def _share(text: str) -> Share:
    dataset, _, amounts = text.partition("=")
    epsilon, _, delta = amounts.partition(",")
    try:
        return Share(dataset, float(epsilon), float(delta))
    except ValueError:
        raise InvalidRequest("A budget is NAME=EPSILON,DELTA, as houses=1.5,1e-6.") from None
