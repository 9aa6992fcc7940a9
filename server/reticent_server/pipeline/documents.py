# SPDX-License-Identifier: Apache-2.0
"""The JSON of public values: plans, releases and data sets, as analysts get them."""

import json
from dataclasses import asdict, replace
from typing import Any

from reticent_server.accounting import gaussian_account
from reticent_server.domain.cost import (
    DELTA_UNITS,
    EPSILON_UNITS,
    RHO_UNITS,
    PrivacyCost,
    from_units,
)
from reticent_server.domain.facts import PROFILE_PROBABILITIES, DatasetFacts, Profile
from reticent_server.domain.plan import Guarantee, Plan, Release
from reticent_server.domain.query import query_json
from reticent_server.domain.reservation import Reservation
from reticent_server.domain.schema import Column, Schema
from reticent_server.ledger.model import Pending, Standing
from reticent_server.pipeline.ask import Ask
from reticent_server.pipeline.both_targets import other_target_json
from reticent_server.pipeline.coverage import coverage_json
from reticent_server.pipeline.forecasts import forecast_json
from reticent_server.pipeline.schedule import Turn
from reticent_server.pipeline.wanted import precision_json

Json = dict[str, Any]


def charged_json(cost: PrivacyCost) -> dict[str, float | None]:
    """What a request costs, as floats for display; the ledger holds exact integers."""
    price = gaussian_account.price(cost)
    return {
        "epsilon": from_units(cost.epsilon, EPSILON_UNITS),
        "delta": from_units(cost.delta, DELTA_UNITS),
        "rho": from_units(cost.rho, RHO_UNITS),
        "rho_delta": from_units(cost.rho_delta, DELTA_UNITS),
        "rho_gdp": None if price == gaussian_account.UNPAYABLE else from_units(price, RHO_UNITS),
    }


def plan_json(
    ready: Plan, standing: Standing, target: float | None = None, other: Plan | None = None
) -> Json:
    """The reply to POST /v1/plans. target: of the forecast (pipeline.forecasts). other: of
    pipeline.both_targets.
    """
    return {
        "dataset": ready.facts.name,
        "version": ready.facts.version,
        "query": query_json(ready.query),
        "cost": charged_json(ready.cost),
        "budget": coverage_json(ready, standing),
        "guarantee": asdict(ready.guarantee),
        "deadline_ms": ready.deadline_ms,
        "forecast": forecast_json(ready, target),
        "precision": precision_json(ready),
        "answers": ready.planned.answers,
        "other_target": other_target_json(other),
    }


def promise_json(ready: Plan) -> Json:
    """What is kept of a plan from the charge until the release is settled: a look at it plans
    nothing.
    """
    return {
        "guarantee": asdict(ready.guarantee),
        "deadline_ms": ready.deadline_ms,
        "gaussian": ready.gaussian_rho is not None,
        "counted": ready.lone,
    }


def as_promised(ready: Plan, promise: Json | None) -> Plan:
    """A plan that was made again, shown when it was promised."""
    return ready if promise is None else replace(ready, deadline_ms=promise["deadline_ms"])


def promised_gaussian(promise: Json | None) -> bool:
    """Whether (ε, δ) was turned into ρ by the Gaussian conversion; a release of an earlier version
    knows none.
    """
    return promise is not None and promise.get("gaussian", False)


def promised_counted(promise: Json | None) -> bool:
    """Whether it was by the exact profile of a count."""
    return promise is not None and promise.get("counted", False)


def promised_guarantee(facts: DatasetFacts, pending: Pending) -> Guarantee:
    """What was promised of a pending release when it was charged."""
    if pending.promise is None:  # of an earlier version of this software
        return nothing_computed(facts, pending.cost)
    kept = dict(pending.promise["guarantee"])
    return Guarantee(**(kept | {"assumptions": tuple(kept["assumptions"])}))


def release_body(ready: Plan, reservation: Reservation, release: Release) -> bytes:
    """The release as it is stored for ever and replayed."""
    return _body(
        reservation,
        dataset=ready.facts.name,
        version=ready.facts.version,
        status=release.status,
        query=query_json(ready.query),
        guarantee=asdict(ready.guarantee),
        result=release.result,
        answers=ready.planned.answers,
    )


def unplanned_body(facts: DatasetFacts, reservation: Reservation, ask: Ask) -> bytes:
    """A failed release that could not even be planned again."""
    return _body(
        reservation,
        dataset=facts.name,
        version=facts.version,
        status="failed",
        query=query_json(ask.query),
        guarantee=asdict(nothing_computed(facts, reservation.cost)),
        result=None,
    )


def pending_body(facts: DatasetFacts, pending: Pending, turn: Turn, now_ms: int) -> bytes:
    """A release that is charged and not yet visible; its progress is that of the planned
    schedule.
    """
    return _body(
        Reservation(pending.id, pending.version_id, pending.cost, pending.created_at),
        dataset=pending.dataset,
        version=facts.version,
        status="pending",
        query=pending.request["query"],
        guarantee=asdict(promised_guarantee(facts, pending)),
        result=None,
        progress={
            "state": "queued" if pending.queued else "running",
            "fraction": turn.fraction(now_ms),
            "remaining_ms": turn.remaining_ms(now_ms),
        },
    )


def cancelled_body(facts: DatasetFacts, pending: Pending) -> bytes:
    """A release that was given back before anything was computed."""
    return _body(
        Reservation(pending.id, pending.version_id, PrivacyCost(0, 0, 0), pending.created_at),
        dataset=pending.dataset,
        version=facts.version,
        status="cancelled",
        query=pending.request["query"],
        guarantee=asdict(nothing_computed(facts, PrivacyCost(0, 0, 0))),
        result=None,
    )


def nothing_computed(facts: DatasetFacts, cost: PrivacyCost) -> Guarantee:
    """What is promised of a release that was charged and reveals nothing."""
    return Guarantee(
        tier="unconditional",
        unit=facts.schema.unit.column or "row",
        epsilon=from_units(cost.epsilon, EPSILON_UNITS),
        delta=from_units(cost.delta, DELTA_UNITS),
        mechanism="none",
        statement="Nothing was computed, so nothing is revealed.",
        reference="",
    )


def _body(reservation: Reservation, **fields: Any) -> bytes:
    document = {
        "id": reservation.id,
        "dataset": fields["dataset"],
        "version": fields["version"],
        "status": fields["status"],
        "query": fields["query"],
        "charged": charged_json(reservation.cost),
        "guarantee": fields["guarantee"],
        "result": fields["result"],
        "created_at": reservation.created_at,
    }
    if fields.get("answers"):
        document["answers"] = fields["answers"]
    if "progress" in fields:
        document["progress"] = fields["progress"]
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode()


def dataset_json(facts: DatasetFacts) -> Json:
    """A data set as an analyst sees it: all of it is public."""
    policy = facts.policy
    return {
        "name": facts.name,
        "version": facts.version,
        "n": facts.n,
        "description": facts.schema.description,
        "unit": _unit_json(facts.schema),
        "schema": {"columns": {c.name: _column_json(c) for c in facts.schema.columns}},
        "features": dict(facts.schema.features),
        "tables": {table.name: table.max_rows for table in facts.schema.tables},
        "profile": None if facts.profile is None else _profile_json(facts.profile),
        "policy": {
            "tiers": list(policy.tiers),
            "max_epsilon": policy.max_epsilon,
            "default_delta": facts.default_delta,
            "protocol_required": policy.protocol_required,
        },
    }


def _unit_json(schema: Schema) -> Json:
    unit = schema.unit
    return {"column": unit.column, "max_rows": unit.max_rows, "gaps": unit.gaps}


def _column_json(column: Column) -> Json:
    """Bounds of a categorical column are those of its codes, so they are left out; of dates they
    are days since 1970-01-01.
    """
    return {
        "kind": column.kind.word,
        "lower": None if column.levels else column.lower,
        "upper": None if column.levels else column.upper,
        "levels": list(column.levels) if column.levels else None,
        "missing": list(column.missing),
        "ordered": column.kind.has_levels and column.kind.has_order,
        "date": column.is_date,
        "derived": None if column.recode.derived is None else column.recode.derived.text,
        "role": column.role or None,
        "label": column.label or None,
    }


def _profile_json(profile: Profile) -> Json:
    return {
        "release_id": profile.release_id,
        "probabilities": list(PROFILE_PROBABILITIES),
        "columns": {name: asdict(column) for name, column in profile.columns.items()},
    }
