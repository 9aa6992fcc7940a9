# SPDX-License-Identifier: Apache-2.0
"""May the caller ask about a data set, and which project pays: from access and the catalogue
alone."""

from dataclasses import dataclass

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.principal import Principal
from reticent_server.errors import NO_DATASET, InvalidRequest, NotFound
from reticent_server.pipeline.services import Services

SEVERAL = "Several of your projects have this data set; say in `project` which one pays."


@dataclass(frozen=True, slots=True)
class Admitted:
    """facts: of the data set. project_id: of the shared project that pays; None: the caller's
    own."""

    facts: DatasetFacts
    project_id: str | None


def authorised(
    services: Services, principal: Principal, dataset: str, project: str | None = None
) -> Admitted:
    """project: the name of a shared project; None: the caller's own where it has a grant, else the
    one shared project that has.

    Raises NotFound for a data set or a project that is absent, over, or not the caller's, all
    alike; InvalidRequest where no project is named and several could pay.
    """
    if project is None and services.access.granted(principal.id, dataset):
        return Admitted(services.catalog.facts(dataset), None)
    seats = services.projects.seats(principal.id, dataset)
    paying = [project_id for project_id, name, _ in seats if project in (None, name)]
    if not paying:
        raise NotFound(NO_DATASET)
    if len(paying) > 1:
        raise InvalidRequest(SEVERAL)
    return Admitted(services.catalog.facts(dataset), paying[0])


def askable(services: Services, principal: Principal) -> frozenset[str]:
    """The names of the data sets that the caller may ask about, in any project."""
    own = services.access.grants(principal.id)
    return frozenset(own) | {dataset for _, _, dataset in services.projects.seats(principal.id)}
