# SPDX-License-Identifier: Apache-2.0
"""The profile: a release of the curator's, charged to the population's cap, public afterwards."""

import json
from typing import Any

from reticent_server.domain.query import Privacy
from reticent_server.errors import Conflict, Unavailable
from reticent_server.kinds.profile.kind import ProfileQuery
from reticent_server.kinds.profile.plan import profile_of
from reticent_server.ledger.model import CURATOR
from reticent_server.pipeline import defaults
from reticent_server.pipeline.answer import Ask, charge_and_execute, standing_of
from reticent_server.pipeline.services import Services


def release_profile(
    services: Services, name: str, *, epsilon: float, delta: float | None = None, by: str = CURATOR
) -> dict[str, Any]:
    """Releases and publishes the profile of the current version, once; the release as JSON.

    The version is the idempotency key: a curator who tries again after a crash is not charged twice,
    and is given the stored draw. Raises Conflict where the version has a profile.
    """
    facts = services.catalog.facts(name)
    if facts.profile is not None:
        raise Conflict(f"Version {facts.version} of {name} has a profile already.")
    privacy = Privacy(epsilon=epsilon, delta=delta)
    ask = Ask(name, ProfileQuery(), privacy, idempotency_key=f"profile-{facts.version_id}")
    standing = standing_of(services, facts, ask, None)
    ask, ready = defaults.planned(facts, defaults.with_stored_delta(ask, standing), standing)
    release: dict[str, Any] = json.loads(charge_and_execute(services, ready, ask, None))
    if release["status"] != "reply":
        raise Unavailable("The profile could not be computed; its cost has been charged.")
    profile = profile_of(release["result"], release["id"])
    services.catalog.set_profile(facts.version_id, profile, by=by)
    return release
