"""What a request needs, made once by the composition root."""

from dataclasses import dataclass

from reticent_server.access.form_tokens import FormTokens
from reticent_server.access.rates import RateLimits
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


@dataclass(frozen=True, slots=True)
class Services:
    settings: Settings
    clock: Clock
    catalog: Catalog
    access: Access
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
