# SPDX-License-Identifier: Apache-2.0
"""What a curator's commands about people, budgets and the ledger need: no vault and no engine."""

from dataclasses import dataclass

from reticent_server.access.approvals import Approvals
from reticent_server.access.identities import Identities
from reticent_server.access.peppers import PepperSource
from reticent_server.access.projects import Projects
from reticent_server.access.protocols import Protocols
from reticent_server.access.requests import Requests
from reticent_server.access.service import Access
from reticent_server.access.sign_ins import SignIns
from reticent_server.catalog.repository import Catalog
from reticent_server.domain.clock import Clock
from reticent_server.ledger.service import Ledger


@dataclass(frozen=True, slots=True)
class Books:
    """What is kept in the databases, opened: services of catalogue, access and ledger, and their
    clock."""

    clock: Clock
    catalog: Catalog
    access: Access
    approvals: Approvals
    projects: Projects
    protocols: Protocols
    requests: Requests
    identities: Identities
    peppers: PepperSource
    sign_ins: SignIns
    ledger: Ledger

    def names(self) -> dict[str, str]:
        """The name of every analyst, of the staff, and of every shared project, by id."""
        shared = {project.id: project.name for project in self.projects.all()}
        holders = (*self.access.analysts(), *self.access.curators())
        return {holder.id: holder.name for holder in holders} | shared
