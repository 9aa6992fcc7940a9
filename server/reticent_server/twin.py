# SPDX-License-Identifier: Apache-2.0
"""An analyst's own server for a synthetic table: the real plans and recipes, in the analyst's
process, about nobody.

The client's `Dataset.twin` draws a table from what is public about a data set, and asks this in
place of the network (the extra `reticent[server]` installs it). It takes the data set's document as
GET /v1/datasets/{name} gives it, and the drawn columns; the same planning, mechanisms and recipes
as a curator's server answer then, with the noise of the ε that was asked for. There is no ledger:
nothing private is read, so nothing is charged, and every release says so.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from reticent_server.api.problems import problem
from reticent_server.api.schemas_plan import PlanBody
from reticent_server.domain.clock import SystemClock
from reticent_server.domain.column_kind import published_kind
from reticent_server.domain.dates import ISO_DATES
from reticent_server.domain.facts import ColumnProfile, DatasetFacts, Policy, Profile
from reticent_server.domain.plan import Plan
from reticent_server.domain.private import Private
from reticent_server.domain.query import Privacy
from reticent_server.domain.reservation import Reservation
from reticent_server.domain.schema import Column, Recode, Schema, Unit
from reticent_server.engine.local import LocalEngine
from reticent_server.errors import InvalidQuery, ReticentError
from reticent_server.formula.features import parse_view
from reticent_server.ledger.model import Standing
from reticent_server.pipeline import planning
from reticent_server.pipeline.both_targets import other_target
from reticent_server.pipeline.documents import dataset_json, plan_json, release_body
from reticent_server.pipeline.persons import facts_of_persons
from reticent_server.pipeline.wanted import least_plan
from reticent_server.vault.places import ABSENT_MASK
from reticent_server.web.bodies import PersonsBody, RequestBody
from reticent_server.web.validation import explained

Json = dict[str, Any]
NOT_FOR_INFERENCE = (
    "Not for inference: a synthetic table drawn from public facts. No record was read, and "
    "nothing was charged."
)
_CACHE_BYTES = 1 << 26  # a table of 10⁶ rows and eight columns stays in memory
_BLOCK_ROWS = 1 << 16  # as a server's blocks by default: a few megabytes of a design
_MASK = ":missing"


class TwinServer:
    """Answers the client's requests about one synthetic table.

    document: of the data set, as it is served. columns: by name, (slots,) stored values: numbers,
    codes of levels, 0 and 1. missing: (slots,) masks of the columns that may be missing.
    """

    def __init__(
        self,
        document: Mapping[str, Any],
        columns: Mapping[str, NDArray[np.float64]],
        missing: Mapping[str, NDArray[np.bool_]],
    ) -> None:
        self._facts = facts_of_document(document)
        self._reader = _SyntheticTable(self._facts, columns, missing)

    def reply(self, path: str, body: Mapping[str, Any]) -> tuple[int, bytes]:
        """(status, JSON) of a POST: plans, releases, and views of persons, as a server replies to
        them.
        """
        try:
            return 200, json.dumps(self._answer(path, body), allow_nan=False).encode()
        except ReticentError as error:
            found = error
        except ValidationError as error:
            located = [each | {"loc": ("body", *each["loc"])} for each in error.errors()]
            found = explained(located)
        refusal = problem(found.status, found.code, found.title, found.detail)
        return found.status, bytes(refusal.body)

    def _answer(self, path: str, body: Mapping[str, Any]) -> Json:
        content = json.dumps(body, allow_nan=False)
        if path.endswith("/persons"):
            asked = PersonsBody.model_validate_json(content)
            return dataset_json(
                facts_of_persons(self._facts, parse_view(asked.persons, self._facts.schema))
            )
        if path == "/v1/plans":
            return self._planned(_PLANS.validate_json(content))
        return self._released(_RELEASES.validate_json(content))

    def _planned(self, body: PlanBody) -> Json:
        ask, wanted = body.ask(), body.widths()

        def planned(epsilon: float) -> Plan:
            return planning.plan(self._facts, ask.query, replace(ask.privacy, epsilon=epsilon))

        highest = ask.privacy.epsilon
        delta = ask.privacy.delta or self._facts.default_delta
        ready = planned(highest) if wanted is None else least_plan(planned, wanted, delta, highest)
        other = other_target(ready, partial(planning.plan, self._facts))
        document = plan_json(ready, Standing(None, None), body.target, other)
        return {name: value for name, value in document.items() if name != "budget"}

    def _released(self, body: RequestBody) -> Json:
        privacy = Privacy(body.privacy.epsilon, body.privacy.delta)
        plan = planning.plan(self._facts, body.query, privacy)
        created_at = SystemClock().now().isoformat().replace("+00:00", "Z")
        paid = Reservation(f"twin_{uuid4().hex}", self._facts.version_id, plan.cost, created_at)
        reader = self._reader
        engine = LocalEngine(
            lambda _: reader, reader, cache_bytes=_CACHE_BYTES, threads=1, block_rows=_BLOCK_ROWS
        )
        try:
            release = engine.execute(plan, paid)
        finally:
            engine.close()
        document: Json = json.loads(release_body(plan, paid, release))
        document["guarantee"] |= {"statement": NOT_FOR_INFERENCE, "assumptions": []}
        document["charged"] = dict.fromkeys(document["charged"], 0.0)
        return document


_PLANS: TypeAdapter[PlanBody] = TypeAdapter(PlanBody)
_RELEASES: TypeAdapter[RequestBody] = TypeAdapter(RequestBody)


def facts_of_document(document: Mapping[str, Any]) -> DatasetFacts:
    """The public facts that a data set's document tells: the inverse of
    pipeline.documents.dataset_json. Raises InvalidQuery for linked tables.
    """
    if document.get("tables"):
        raise InvalidQuery("There is no twin of a data set that links several tables.")
    schema = Schema(
        columns=tuple(
            _column(name, column) for name, column in document["schema"]["columns"].items()
        ),
        unit=Unit(**document["unit"]),
        description=document["description"],
        features=tuple(document.get("features", {}).items()),
    )
    return DatasetFacts(
        name=document["name"],
        population=document["name"],
        version=document["version"],
        version_id="twin",
        n=document["n"],
        schema=schema,
        profile=_profile(document["profile"]),
        policy=Policy(
            tuple(document["policy"]["tiers"]), None, document["policy"]["default_delta"]
        ),
    )


def _column(name: str, column: Mapping[str, Any]) -> Column:
    dates = bool(column.get("date"))
    kind = published_kind(column["kind"], ordered=bool(column.get("ordered")))
    levels, recode = tuple(column["levels"] or ()), Recode(date=ISO_DATES if dates else "")
    lower = 0.0 if column["lower"] is None else float(column["lower"])
    upper = len(levels) - 1.0 if levels else float(column["upper"])
    role = str(column.get("role") or "")
    label, missing = str(column.get("label") or ""), tuple(column["missing"])
    return Column(name, kind, lower, upper, levels, missing, recode, role, label)


def _profile(content: Mapping[str, Any] | None) -> Profile | None:
    if content is None:
        return None
    columns = {name: _column_profile(column) for name, column in content["columns"].items()}
    return Profile(columns, content["release_id"])


def _column_profile(column: Mapping[str, Any]) -> ColumnProfile:
    lists = ("quantiles", "counts", "probabilities")
    fields: dict[str, Any] = {
        name: tuple(value) if name in lists and value is not None else value
        for name, value in column.items()
    }
    return ColumnProfile(**fields)


class _SyntheticTable:
    """The reader of the drawn columns, which asks nobody whether an answer was paid for."""

    def __init__(
        self,
        facts: DatasetFacts,
        columns: Mapping[str, NDArray[np.float64]],
        missing: Mapping[str, NDArray[np.bool_]],
    ) -> None:
        self.n = facts.slots
        self._fields = {**columns, **{f"{name}{_MASK}": mask for name, mask in missing.items()}}
        self._always = (ABSENT_MASK,) if facts.schema.unit.many_rows else ()
        # every place holds a row: how many rows persons have is not public
        self._fields |= {mask: np.zeros(self.n, np.bool_) for mask in self._always}

    def batches(self, columns: Sequence[str]) -> Iterator[Private[pa.RecordBatch]]:
        """The requested columns of the drawn rows, in one batch."""
        names = [key for name in columns for key in (name, f"{name}{_MASK}") if key in self._fields]
        fields = {name: pa.array(self._fields[name]) for name in (*names, *self._always)}
        yield Private(pa.RecordBatch.from_pydict(fields))

    def confirm(self, _reservation: Reservation) -> bool:
        """Nothing is charged."""
        return True
