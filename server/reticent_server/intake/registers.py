# SPDX-License-Identifier: Apache-2.0
"""A population's places, declared before its tables are: a register of identifiers, a capacity, or
a table loaded earlier."""

from dataclasses import dataclass, replace
from pathlib import Path

from reticent_server.access.approvals import Approvals
from reticent_server.access.secret_places import persons_key, place_of
from reticent_server.catalog.populations import Population, new_spine
from reticent_server.catalog.repository import Catalog
from reticent_server.domain.schema import Schema, Unit
from reticent_server.domain.source import Spine, VaultTable
from reticent_server.errors import Conflict, CuratorError, NotFound
from reticent_server.intake.populations import check_apart, check_reason
from reticent_server.pipeline.second_person import require
from reticent_server.settings import Settings
from reticent_server.vault.ingest import ingest
from reticent_server.vault.loading import Load, loading

_ONE = (
    "Give one of --register, --capacity and --table, or none for a population of rows or of its "
    "first table's persons."
)
_MIXED = (
    "The population's data sets protect different units, so that it can declare no places: load "
    "those of one unit into "
    "another population."
)
_NO_COLUMN = "Give --column: the column that names persons, in the register and in every table."
_NOT_WIDER = "A population keeps its places: give a larger number than the {} that it has."
_NO_PLACES = "The population declares no places yet; declare them with `reticent population add`."


@dataclass(frozen=True, slots=True)
class Asked:
    """A population to be made. column: of the unit; None: rows. At most one of: register, a file
    with the persons' identifiers; capacity, a number of places; table, a data set of the population
    that earlier versions have loaded. separate: as Named's. instead: why these places replace
    others, which cannot be found any more; None: they do not."""

    name: str
    column: str | None = None
    register: Path | None = None
    capacity: int | None = None
    table: str | None = None
    separate: str | None = None
    instead: str | None = None

    @property
    def places_are_left_out(self) -> bool:
        """Whether the first table is to say who has a place."""
        return self.register is None and self.capacity is None and self.table is None


def add_population(
    settings: Settings, catalog: Catalog, approvals: Approvals, asked: Asked, *, by: str
) -> Population:
    """Makes the population, or declares the places of one that earlier versions have loaded, or
    other places where the vault or the key that knew the persons is lost. Raises CuratorError,
    Conflict, NotFound, SecondPerson, PolicyRefused."""
    check_reason(asked.separate)
    check_reason(asked.instead)
    known = catalog.population(asked.name)
    if asked.instead is not None:
        if known.spine is None:
            raise NotFound("There is no such population with places.")
        if asked.places_are_left_out:
            raise CuratorError("Give --register or --capacity.")
    elif known.is_declared and (known.spine is not None or asked.places_are_left_out):
        raise Conflict(f"There is a population {asked.name} already.")
    separate = known.separate if asked.instead is not None else asked.separate or ""
    made = replace(known, units=frozenset({_unit(known, asked)}), separate=separate)
    if asked.register is None:
        spine = _declared(catalog, made, asked)
        return _made(catalog, approvals, replace(made, spine=spine), asked.instead, by=by)
    with loading(settings.vault_url, catalog.identity(), catalog.vault_tables) as load:
        table = _registered(settings, load, made, asked.register)
        check_apart(settings, catalog, made, asked.separate, table)
        made = replace(made, spine=new_spine(table.n, table))
        return _made(catalog, approvals, made, asked.instead, by=by)


def _unit(known: Population, asked: Asked) -> str | None:
    """The column that names persons, or None. Raises CuratorError."""
    if sum(x is not None for x in (asked.register, asked.capacity, asked.table)) > 1:
        raise CuratorError(_ONE)
    if len(known.units) > 1:
        raise CuratorError(_MIXED)
    unit = asked.column if not known.units else next(iter(known.units))
    if asked.column not in {None, unit}:
        raise CuratorError(f"The population's unit is {unit or 'a row'}; leave --column out.")
    if unit is None and not asked.places_are_left_out:
        raise CuratorError(_NO_COLUMN)
    return unit


def _declared(catalog: Catalog, made: Population, asked: Asked) -> Spine | None:
    """The places that a capacity or a loaded table gives. Raises CuratorError, NotFound."""
    if asked.capacity is not None:
        return new_spine(asked.capacity, None, grows=True)
    if asked.table is None:
        return None
    if asked.table not in made.datasets:
        raise CuratorError(f"{asked.table} is not a data set of population {made.name}.")
    source = catalog.source(catalog.facts(asked.table).version_id)
    if not isinstance(source, VaultTable) or not source.names:
        raise CuratorError(
            f"The persons of {asked.table} have no names in the vault; load it again."
        )
    return new_spine(source.persons, source, asked.table)


def _registered(settings: Settings, load: Load, made: Population, file: Path) -> VaultTable:
    """The identifiers of a file, stored as names. Raises CuratorError naming a row that repeats
    one."""
    (column,) = made.units
    schema = Schema((), Unit(column, 1))
    return ingest(load, file, schema, key=persons_key(place_of(settings))).source


def _made(
    catalog: Catalog, approvals: Approvals, made: Population, instead: str | None, *, by: str
) -> Population:
    """Records it, where no second person is asked for or one has approved. Raises SecondPerson,
    PolicyRefused, Conflict."""
    spine, (unit,) = made.spine, made.units
    places = None if spine is None else {"n": spine.n, "grows": spine.grows, "of": spine.dataset}
    wish = {"name": made.name, "unit": unit, "places": places, "separate": made.separate}
    wish |= {} if instead is None else {"instead": instead}
    require(catalog, approvals, "load", made.name, wish, by=by)
    if made.is_declared and spine is not None:
        catalog.declare_places(made.name, spine, by=by, instead=instead)
    else:
        catalog.add_population(made, by=by)
    return catalog.population(made.name)


def widen(
    catalog: Catalog, approvals: Approvals, name: str, capacity: int, *, by: str
) -> Population:
    """Declares more places: whoever has one keeps it, and who comes later takes a free one. Raises
    as add_population."""
    known = catalog.population(name)
    if not known.is_made:
        raise NotFound("There is no such population.")
    if known.spine is None:
        raise CuratorError(_NO_PLACES)
    if capacity <= known.spine.n:
        raise CuratorError(_NOT_WIDER.format(known.spine.n))
    checked = new_spine(capacity, None, grows=True)
    require(catalog, approvals, "load", name, {"name": name, "places": capacity}, by=by)
    catalog.declare_places(name, replace(known.spine, n=checked.n, grows=True), by=by)
    return catalog.population(name)
