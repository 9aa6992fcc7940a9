# SPDX-License-Identifier: Apache-2.0
"""The terms of a data set: its policy is set, its profile forecast and released."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated
from urllib.parse import quote

from fastapi import Depends, Response

from reticent_server.console.pages import PageProblem, dataset_page
from reticent_server.domain.facts import Policy
from reticent_server.domain.roles import Act
from reticent_server.errors import ReticentError
from reticent_server.pipeline.policies import TIERS, set_policy
from reticent_server.pipeline.profile import profile_forecast, release_profile
from reticent_server.web.forms import amount
from reticent_server.web.routing import pages_router
from reticent_server.web.visits import Visit, posted_for

router = pages_router("console")

Ruling = Annotated[Visit, Depends(posted_for(Act.SET_POLICY))]
Profiling = Annotated[Visit, Depends(posted_for(Act.PROFILE))]


@router.post("/datasets/{name}/policy")
def policy(visit: Ruling, name: str) -> Response:
    """Replaces the policy by the one that the form says."""
    services = visit.services
    now = services.catalog.facts(name).policy
    try:
        changed = _policy(now, visit.fields)
        set_policy(services.catalog, services.approvals, name, changed, by=visit.actor)
    except ReticentError as error:
        return dataset_page(visit, name, PageProblem("policy", error))
    return visit.redirect(f"/console/datasets/{quote(name)}?done=policy#policy")


@router.post("/datasets/{name}/profile")
def profile(visit: Profiling, name: str) -> Response:
    """Releases the profile, charged to the cap; sent twice, it is charged once. With `forecast`,
    only tells what it would be worth.
    """
    try:
        epsilon = amount(visit.fields, "epsilon", "ε")
        if visit.fields.get("forecast") == "yes":
            expected = profile_forecast(visit.services, name, epsilon=epsilon)
            return dataset_page(visit, name, expected=expected)
        release_profile(visit.services, name, epsilon=epsilon, by=visit.actor)
    except ReticentError as error:
        return dataset_page(visit, name, PageProblem("profile", error))
    return visit.redirect(f"/console/datasets/{quote(name)}?done=profile#profile")


def _policy(now: Policy, fields: Mapping[str, str]) -> Policy:
    """Empty fields mean no limit, and the usual δ. Raises InvalidPrivacy."""
    return replace(
        now,
        tiers=tuple(tier for tier in TIERS if fields.get(f"tier-{tier}") == "yes"),
        max_epsilon=_amount(fields, "max_epsilon", "The largest ε of a request"),
        default_delta=_amount(fields, "default_delta", "δ where a request has none"),
        second_person=fields.get("second_person") == "yes",
        protocol_required=fields.get("protocol_required") == "yes",
    )


def _amount(fields: Mapping[str, str], name: str, label: str) -> float | None:
    return amount(fields, name, label) if fields.get(name) else None
