# SPDX-License-Identifier: Apache-2.0
"""What a request needs, made once by the composition root."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reticent_server.access.form_tokens import FormTokens
from reticent_server.access.rates import RateLimits
from reticent_server.engine.local import LocalEngine
from reticent_server.pipeline.books import Books
from reticent_server.pipeline.pace import Pace
from reticent_server.pipeline.planner import Planner
from reticent_server.pipeline.readiness import Readiness
from reticent_server.pipeline.schedule import ReleaseQueue
from reticent_server.pipeline.settling import Settler
from reticent_server.settings import Settings

if TYPE_CHECKING:
    from reticent_server.access.oidc.single_sign_on import SingleSignOn


@dataclass(frozen=True, slots=True)
class Services(Books):
    """single_sign_on: None where no identity provider is set; its libraries are then not
    imported."""

    settings: Settings
    form_tokens: FormTokens
    rates: RateLimits
    cancellations: RateLimits
    sign_in_limits: RateLimits
    engine: LocalEngine
    pace: Pace
    planner: Planner
    queue: ReleaseQueue
    settler: Settler
    readiness: Readiness
    single_sign_on: "SingleSignOn | None" = None
