# SPDX-License-Identifier: Apache-2.0
"""The populations of the catalogue: what each is of, and its places.

A population is made once, by a curator's command or by the first load into it, and its unit stays.
Its spine is declared then or later, and can be widened; nothing else about it changes but the
reason for which it is kept separate from others about some of the same persons. Whether there is
one is private, as it is asked for where somebody is in two populations: no entry of the chain has
it, every row holds a salt beside it, so that no digest tells it either, and every load writes the
row again. A population whose data sets were loaded by earlier versions has no row until a spine is
declared: its unit is then that of its data sets.
"""

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, insert, select, update

from reticent_server.catalog.json_values import spine_from_json, spine_to_json
from reticent_server.catalog.tables import dataset_versions, datasets, populations
from reticent_server.chain.acts import Change, require_recorded
from reticent_server.domain.schema import Unit
from reticent_server.domain.source import LinkedTables, Source, Spine, VaultTable
from reticent_server.errors import CuratorError

_SALT_BYTES = 16
_SALTED = re.compile(r"#[0-9a-f]{32}#(.*)", re.DOTALL)
"""A stored reason behind its salt; rows of earlier versions have the reason alone, or none."""

_ID_BYTES = 6  # of a spine's id: names what is in one catalogue
MOST_SPINE = 1 << 30  # places: as many as a table of persons may have


@dataclass(frozen=True, slots=True)
class Population:
    """units: the one unit of its data sets, a column's name or None for a row; several where
    earlier versions have mixed them, none where it is new. is_made: whether it has a row, or data
    sets. spine: None where no places are declared. separate: why it is kept separate from others
    about the same persons; empty: it is not."""

    name: str
    units: frozenset[str | None] = frozenset()
    is_made: bool = False
    is_declared: bool = False
    spine: Spine | None = None
    separate: str = ""
    datasets: tuple[str, ...] = ()

    @property
    def unit_words(self) -> str:
        """What it protects: "row", or the column that names persons."""
        return ", ".join(sorted(unit or "row" for unit in self.units)) or "not known yet"

    @property
    def spine_words(self) -> str:
        """Where its places come from."""
        if self.spine is None:
            return "every row" if self.units == {None} else "not declared"
        if self.spine.grows:
            return "a declared capacity"
        return f"the persons of {self.spine.dataset}" if self.spine.dataset else "a register"


def population_of(connection: Connection, name: str) -> Population:
    """What is known of a population. Raises Unavailable where a row is not as the chain says."""
    require_recorded(connection, populations, (name,))
    query = select(populations).where(populations.c.name == name)
    row = connection.execute(query).mappings().one_or_none()
    names = select(datasets.c.name).where(datasets.c.population == name).order_by(datasets.c.name)
    own = tuple(connection.scalars(names))
    if row is None:
        return Population(name, _units(connection, name), bool(own), datasets=own)
    return Population(
        name,
        frozenset({row["unit"]}),
        is_made=True,
        is_declared=True,
        spine=None if row["spine"] is None else spine_from_json(row["spine"]),
        separate=_reason(row["separate"] or ""),
        datasets=own,
    )


def _reason(stored: str) -> str:
    salted = _SALTED.fullmatch(stored)
    return salted[1] if salted else stored


def _with_salt(reason: str) -> str:
    return f"#{secrets.token_hex(_SALT_BYTES)}#{reason}"


def _units(connection: Connection, name: str) -> frozenset[str | None]:
    """The units of all versions that the population's data sets have had."""
    query = (
        select(dataset_versions.c.schema)
        .join(datasets, datasets.c.name == dataset_versions.c.dataset)
        .where(datasets.c.population == name)
    )
    return frozenset(schema["unit"]["column"] for schema in connection.scalars(query))


def check_unit(population: Population, unit: Unit, dataset: str) -> None:
    """Raises CuratorError where a data set is of another unit than its population."""
    if not population.units or unit.column in population.units:
        return
    known = next(iter(population.units))
    raise CuratorError(
        f"Population {population.name} protects {_words(known)}, and {dataset} would protect "
        f"{_words(unit.column)}: one cap "
        "cannot add up two promises. Declare the population's unit in the schema file, or load "
        "the table into another population."
    )


def _words(unit: str | None) -> str:
    return "single rows" if unit is None else f"all rows with one {unit}"


def new_spine(n: int, table: VaultTable | None, dataset: str = "", *, grows: bool = False) -> Spine:
    """A spine that nobody has yet. Raises CuratorError for a number of places that cannot be."""
    if not 1 <= n <= MOST_SPINE:
        raise CuratorError(f"A population has 1 to {MOST_SPINE} places.")
    spine_id = secrets.token_hex(_ID_BYTES)
    placed = None if table is None else replace(table, spine=spine_id)
    return Spine(spine_id, n, grows, placed, dataset)


def first_spine(source: Source, dataset: str) -> Spine | None:
    """The spine that a population has by its first table: the table's persons; None where they have
    no names."""
    if not isinstance(source, VaultTable) or not source.names:
        return None
    return new_spine(source.persons, source, dataset)


def has_places(spine: Spine, source: Source, n: int) -> bool:
    """Whether a table or link has exactly the places of the spine as it is now."""
    match source:
        case VaultTable():
            return source.spine == spine.id and source.persons == n == spine.n
        case LinkedTables():
            return source.spine is not None and source.spine.id == spine.id and n == spine.n
        case _:
            return False


def make(connection: Connection, made: Population, detail: Mapping[str, Any]) -> list[Change]:
    """Inserts the population, and says so."""
    values = {
        "name": made.name,
        "unit": next(iter(made.units)),
        "spine": None if made.spine is None else spine_to_json(made.spine),
        "separate": _with_salt(made.separate),
    }
    connection.execute(insert(populations).values(values))
    return [Change("population.add", populations, (made.name,), _told(made) | dict(detail))]


def change(
    connection: Connection, changed: Population, action: str, why: str | None = None
) -> list[Change]:
    """Replaces spine and reason, and says so. why: a reason that the entry is to give."""
    require_recorded(connection, populations, (changed.name,))
    values = {
        "spine": None if changed.spine is None else spine_to_json(changed.spine),
        "separate": _with_salt(changed.separate),
    }
    this = populations.c.name == changed.name
    connection.execute(update(populations).where(this).values(values))
    reason = {} if why is None else {"reason": why}
    return [Change(action, populations, (changed.name,), _told(changed) | reason)]


def _told(population: Population) -> dict[str, Any]:
    spine = population.spine
    places = None if spine is None else {"places": spine.n, "grows": spine.grows}
    return {"unit": next(iter(population.units)), "spine": places}


def all_names(connection: Connection) -> Sequence[str]:
    """The populations that have a row, or data sets."""
    names = select(populations.c.name).union(select(datasets.c.population))
    return sorted(connection.scalars(names))
