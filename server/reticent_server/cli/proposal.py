# SPDX-License-Identifier: Apache-2.0
"""`reticent proposal …`: what waits for a second person."""

from dataclasses import asdict
from typing import Annotated

import typer

from reticent_server.cli.analyst import tell
from reticent_server.cli.common import JsonFlag, acting, command, minute, print_json, show, user
from reticent_server.domain.roles import Act
from reticent_server.opening import open_approvals
from reticent_server.pipeline import second_person
from reticent_server.settings import Settings

app = typer.Typer(help="Approve what policies ask a second person for.", no_args_is_help=True)

ProposalId = Annotated[str, typer.Argument(help="The proposal's id; `proposal list` shows them.")]


@app.command("list")
@command(Act.LOOK)
def list_proposals(as_json: JsonFlag = False) -> None:
    """List proposals; what waits comes first."""
    with open_approvals(Settings()) as approvals:
        proposals = approvals.all()
    if as_json:
        print_json([asdict(proposal) for proposal in proposals])
        return
    rows = [
        {
            "id": p.id,
            "act": p.act,
            "population": p.population,
            "what": ", ".join(f"{name}: {value}" for name, value in p.document.items()),
            "by": p.proposed_by,
            "time": minute(p.proposed_at),
            "state": p.status
            if p.is_valid or p.status not in {"pending", "approved"}
            else "too old",
        }
        for p in proposals
    ]
    show(rows, as_json=False)


@app.command()
@command(Act.APPROVE)
def approve(proposal_id: ProposalId, as_json: JsonFlag = False) -> None:
    """Approve what somebody else has proposed; it is done when it is sent again. Needs a key."""
    with open_approvals(Settings()) as approvals:
        second_person.approve(approvals, acting(), proposal_id, by=user())
    told: dict[str, object] = {"id": proposal_id, "status": "approved"}
    tell(
        "Approved. The act is done when it is sent again as it was proposed.", told, as_json=as_json
    )


@app.command()
@command(Act.APPROVE)
def refuse(proposal_id: ProposalId, as_json: JsonFlag = False) -> None:
    """Refuse a proposal, or take back one's own. Needs a key."""
    with open_approvals(Settings()) as approvals:
        second_person.refuse(approvals, acting(), proposal_id, by=user())
    tell("Refused.", {"id": proposal_id, "status": "refused"}, as_json=as_json)
