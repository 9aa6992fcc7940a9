# SPDX-License-Identifier: Apache-2.0
"""The profile: a release of the curator's, charged to the population's cap, public afterwards."""

import json
from typing import Any

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Privacy
from reticent_server.errors import Conflict, Unavailable
from reticent_server.fitting.column_measures import is_resolved
from reticent_server.kinds.profile.kind import ProfileQuery
from reticent_server.kinds.profile.plan import profile_of
from reticent_server.ledger.model import CURATOR
from reticent_server.pipeline import defaults
from reticent_server.pipeline.answer import Ask, charge_and_execute
from reticent_server.pipeline.request import Prepared, request_of
from reticent_server.pipeline.services import Services


def release_profile(
    services: Services,
    name: str,
    *,
    epsilon: float,
    delta: float | None = None,
    by: str = CURATOR,
    instead: bool = False,
) -> dict[str, Any]:
    """Releases and publishes the profile of the current version; the release as JSON.

    The version and the profile before are the idempotency key: a curator who tries again after a
    crash is not charged twice, and is given the stored draw. instead: whether a profile that is
    there gives way, for planning, to the new one; the old release stays and was paid. Raises
    Conflict where the version has a profile and instead is False.
    """
    facts = services.catalog.facts(name)
    before = None if facts.profile is None else facts.profile.release_id
    if before is not None and not instead:
        raise Conflict(
            f"Version {facts.version} of {name} has a profile already. Another one is charged as "
            "well and takes its place for "
            "planning: ask for that with --instead."
        )
    ready = _planned(services, facts, epsilon, delta, before)
    release: dict[str, Any] = json.loads(charge_and_execute(services, ready))
    if release["status"] != "reply":
        raise Unavailable("The profile could not be computed; its cost has been charged.")
    profile = profile_of(release["result"], release["id"])
    services.catalog.set_profile(facts.version_id, profile, by=by, instead_of=before)
    return release


def profile_forecast(
    services: Services, name: str, *, epsilon: float, delta: float | None = None
) -> dict[str, Any]:
    """The precision of a profile by column, and which columns it would not resolve; from public
    facts, nothing is charged."""
    facts = services.catalog.facts(name)
    ready = _planned(services, facts, epsilon, delta, None)
    return dict(ready.plan.planned.forecast)


def unresolved(facts: DatasetFacts) -> tuple[str, ...]:
    """The columns of which a released profile does not have the spread: each fit that reads one
    profiles it for itself.
    """
    if facts.profile is None:
        return ()
    known = facts.profile.columns
    return tuple(c.name for c in facts.schema.columns if not is_resolved(c, known.get(c.name)))


def _planned(
    services: Services, facts: DatasetFacts, epsilon: float, delta: float | None, before: str | None
) -> Prepared:
    key = f"profile-{facts.version_id}" + (f"-after-{before}" if before else "")
    privacy = Privacy(epsilon=epsilon, delta=delta)
    ask = Ask(facts.name, ProfileQuery(), privacy, idempotency_key=key)
    request = request_of(services, facts, ask).with_stored_delta
    return request.planned_as(defaults.planned(facts, request.ask, request.standing))
