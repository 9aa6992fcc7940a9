# SPDX-License-Identifier: Apache-2.0
"""An admitted request: the one value that goes from asking to planning and paying."""

from dataclasses import dataclass, replace

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Plan
from reticent_server.domain.principal import Principal
from reticent_server.ledger.service import Standing
from reticent_server.pipeline import defaults
from reticent_server.pipeline.ask import Ask
from reticent_server.pipeline.authorising import authorised
from reticent_server.pipeline.services import Services


@dataclass(frozen=True, slots=True)
class AdmittedRequest:
    """ask: as it was sent, or with its δ. facts: of the data set. standing: what it meets in the
    ledger. analyst_id: of the caller; None: the curator's own. project_id: of the shared project
    that pays; None: none does."""

    ask: Ask
    facts: DatasetFacts
    standing: Standing
    analyst_id: str | None = None
    project_id: str | None = None

    @property
    def with_stored_delta(self) -> "AdmittedRequest":
        """With the δ that its idempotency key was used with, where it names none."""
        return replace(self, ask=defaults.with_stored_delta(self.ask, self.standing))

    def planned_as(self, planned: tuple[Ask, Plan]) -> "Prepared":
        """With its plan, and the ask as it was planned (defaults.planned)."""
        ask, plan = planned
        return Prepared(replace(self, ask=ask), plan)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that was planned and is charged nothing yet; its ask has its δ."""

    request: AdmittedRequest
    plan: Plan


def admitted(services: Services, principal: Principal, ask: Ask) -> AdmittedRequest:
    """The request of an analyst who may ask. Raises what pipeline.authorising does."""
    may = authorised(services, principal, ask.dataset, ask.project)
    return request_of(services, may.facts, ask, principal.id, may.project_id)


def request_of(
    services: Services,
    facts: DatasetFacts,
    ask: Ask,
    analyst_id: str | None = None,
    project_id: str | None = None,
) -> AdmittedRequest:
    """The request of a caller who is known to be allowed to ask."""
    key = ask.idempotency_key
    standing = services.ledger.standing(analyst_id, facts.name, facts.population, key, project_id)
    return AdmittedRequest(ask, facts, standing, analyst_id, project_id)
