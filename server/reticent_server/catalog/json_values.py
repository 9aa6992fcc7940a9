# SPDX-License-Identifier: Apache-2.0
"""The catalogue's values as JSON, and back: what is stored is what was released or declared.

Floats survive exactly, since JSON writes the shortest decimal that reads back as the same float.
"""

from dataclasses import asdict
from typing import Any

from reticent_server.domain.column_kind import ColumnKind
from reticent_server.domain.derived import Derived, Step
from reticent_server.domain.facts import ColumnProfile, Policy, Profile
from reticent_server.domain.reading import Reading
from reticent_server.domain.schema import Column, LinkedTable, Recode, Schema, Unit
from reticent_server.domain.source import (
    Form,
    LinkedTables,
    NamedTable,
    ParquetFile,
    ParquetFiles,
    Source,
    Spine,
    SqlTable,
    StoredColumn,
    TableColumn,
    VaultTable,
)

Json = dict[str, Any]
_FIRST_PROBABILITIES = tuple(k / 20 for k in range(1, 20))  # of profiles stored without them


def schema_to_json(schema: Schema) -> Json:
    """As the catalogue stores a schema; what is not declared is left out."""
    return {
        "description": schema.description,
        "unit": _unit_to_json(schema.unit),
        "columns": [_column_to_json(c) for c in schema.columns],
        **_persons_to_json(schema),
        **({"file": schema.reading.said} if schema.reading.said else {}),
    }


def _unit_to_json(unit: Unit) -> Json:
    """Without `gaps` where there are none, as in schemas of earlier versions, which approvals refer
    to.
    """
    return {key: value for key, value in asdict(unit).items() if key != "gaps" or value}


def _persons_to_json(schema: Schema) -> Json:
    """Left out where there are none, as in schemas of earlier versions, which approvals refer
    to.
    """
    features = [[name, text] for name, text in schema.features]
    tables = [asdict(table) for table in schema.tables]
    return ({"features": features} if features else {}) | ({"tables": tables} if tables else {})


def _column_to_json(column: Column) -> Json:
    """Without a role or a label where it has none, as in schemas of earlier versions, which
    approvals refer to.
    """
    stored = asdict(column) | {
        "kind": column.kind.value,
        "levels": list(column.levels),
        "missing": list(column.missing),
        "recode": _recode_to_json(column.recode),
    }
    return {key: value for key, value in stored.items() if key not in {"role", "label"} or value}


def _recode_to_json(recode: Recode) -> Json:
    """Without the keys that later versions have added where they say nothing, as in schemas of
    earlier versions, which approvals refer to.
    """
    stored = asdict(recode) | {"codes": [list(code) for code in recode.codes]}
    absent = {key for key in ("date", "derived") if not getattr(recode, key)}
    return {key: value for key, value in stored.items() if key not in absent}


def schema_from_json(stored: Json) -> Schema:
    """The schema of a stored version, whatever version of the server stored it."""
    return Schema(
        columns=tuple(_column_from_json(c) for c in stored["columns"]),
        unit=Unit(**stored["unit"]),
        description=stored["description"],
        features=tuple((name, text) for name, text in stored.get("features", ())),
        tables=tuple(LinkedTable(**table) for table in stored.get("tables", ())),
        reading=Reading(**stored.get("file", {})),
    )


def _column_from_json(stored: Json) -> Column:
    return Column(
        name=stored["name"],
        kind=ColumnKind(stored["kind"]),
        lower=float(stored["lower"]),
        upper=float(stored["upper"]),
        levels=tuple(stored["levels"]),
        missing=tuple(stored["missing"]),
        recode=_recode_from_json(stored.get("recode", {})),
        role=stored.get("role", ""),
        label=stored.get("label", ""),
    )


def _recode_from_json(stored: Json) -> Recode:
    """Schemas stored before there were recodes have none."""
    codes = tuple((text, float(value)) for text, value in stored.get("codes", ()))
    date, derived = stored.get("date", ""), stored.get("derived")
    steps = () if derived is None else tuple(Step(**step) for step in derived["steps"])
    computed = None if derived is None else Derived(derived["text"], steps)
    return Recode(stored.get("source", ""), codes, stored.get("other"), date, computed)


def source_to_json(source: Source) -> Json:
    """As the catalogue stores where a version's rows are, with the kind of the source."""
    return {"kind": source.kind} | asdict(source)


def source_from_json(stored: Json) -> Source:
    """The source of a stored version. Raises KeyError for a kind that is not known."""
    match stored["kind"]:
        case VaultTable.kind:
            return _vault_table(stored)
        case LinkedTables.kind:
            tables = (
                NamedTable(**t | {"table": _vault_table(t["table"])}) for t in stored["tables"]
            )
            spine = stored.get("spine")
            placed = None if spine is None else spine_from_json(spine)
            return LinkedTables(n=stored["n"], tables=tuple(tables), spine=placed)
        case SqlTable.kind:
            return SqlTable(
                connection=stored["connection"],
                table=stored["table"],
                order=tuple(stored["order"]),
                n=stored["n"],
                columns=tuple(TableColumn(c["name"], Form(c["form"])) for c in stored["columns"]),
            )
        case ParquetFiles.kind:
            files = tuple(ParquetFile(**f) for f in stored["files"])
            return ParquetFiles(directory=stored["directory"], files=files)
        case _:
            raise ValueError("a source of an unknown kind; the database is newer than this program")


def _vault_table(stored: Json) -> VaultTable:
    """Earlier versions had neither several rows a person, nor names, nor places in a population."""
    fields = {key: value for key, value in stored.items() if key != "kind"}
    columns = tuple(StoredColumn(**c) for c in stored["columns"])
    return VaultTable(**fields | {"columns": columns})


def spine_to_json(spine: Spine) -> Json:
    """As the catalogue stores the places of a population's persons."""
    return asdict(spine)


def spine_from_json(stored: Json) -> Spine:
    """The stored places of a population's persons."""
    table = stored["table"]
    return Spine(**stored | {"table": None if table is None else _vault_table(table)})


def profile_to_json(profile: Profile) -> Json:
    """As the catalogue stores a released profile, column by column."""
    return {
        "release_id": profile.release_id,
        "columns": {name: asdict(column) for name, column in profile.columns.items()},
    }


def profile_from_json(stored: Json) -> Profile:
    """The profile of a stored version."""
    columns = {name: _column_profile(c) for name, c in stored["columns"].items()}
    return Profile(columns=columns, release_id=stored["release_id"])


def _column_profile(stored: Json) -> ColumnProfile:
    return ColumnProfile(
        quantiles=_floats(stored["quantiles"]),
        counts=_floats(stored["counts"]),
        missing=stored["missing"],
        probabilities=tuple(stored.get("probabilities", _FIRST_PROBABILITIES)),
        first=stored.get("first", 0.0),
        count_sd=stored.get("count_sd"),
    )


def _floats(values: list[float] | None) -> tuple[float, ...] | None:
    return None if values is None else tuple(float(v) for v in values)


def policy_to_json(policy: Policy) -> Json:
    """As the catalogue stores what a curator allows."""
    return asdict(policy) | {"tiers": list(policy.tiers)}


def policy_from_json(stored: Json) -> Policy:
    """The stored policy; one of an earlier version asks for no second person and no protocol."""
    return Policy(
        tiers=tuple(stored["tiers"]),
        max_epsilon=stored["max_epsilon"],
        default_delta=stored["default_delta"],
        second_person=stored.get("second_person", False),
        protocol_required=stored.get("protocol_required", False),
    )
