"""What a request needs, made once by the composition root."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reticent_server.access.approvals import Approvals
from reticent_server.access.form_tokens import FormTokens
from reticent_server.access.identities import Identities
from reticent_server.access.peppers import PepperSource
from reticent_server.access.projects import Projects
from reticent_server.access.rates import RateLimits
from reticent_server.access.requests import Requests
from reticent_server.access.service import Access
from reticent_server.access.sign_ins import SignIns
from reticent_server.catalog.repository import Catalog
from reticent_server.domain.clock import Clock
from reticent_server.engine.local import LocalEngine
from reticent_server.ledger.service import Ledger
from reticent_server.pipeline.readiness import Readiness
from reticent_server.pipeline.schedule import ReleaseQueue
from reticent_server.pipeline.settling import Settler
from reticent_server.settings import Settings

if TYPE_CHECKING:
    from reticent_server.access.oidc.single_sign_on import SingleSignOn


@dataclass(frozen=True, slots=True)
class Services:
    """single_sign_on: None where no identity provider is set; its libraries are then not imported."""

    settings: Settings
    clock: Clock
    catalog: Catalog
    access: Access
    approvals: Approvals
    projects: Projects
    requests: Requests
    identities: Identities
    peppers: PepperSource
    sign_ins: SignIns
    form_tokens: FormTokens
    rates: RateLimits
    cancellations: RateLimits
    sign_in_limits: RateLimits
    ledger: Ledger
    engine: LocalEngine
    queue: ReleaseQueue
    settler: Settler
    readiness: Readiness
    single_sign_on: "SingleSignOn | None" = None
