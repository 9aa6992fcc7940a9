# SPDX-License-Identifier: Apache-2.0
"""What the catalogue holds a version against before it is recorded, on both databases."""

from dataclasses import replace

import pytest

from reticent_server.catalog.repository import Catalog
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Column, ColumnKind, Schema, Unit
from reticent_server.domain.source import VaultTable
from reticent_server.errors import Conflict

SCHEMA = Schema((Column("x", ColumnKind.NUMERIC, 0.0, 1.0),), Unit("person", 3))


def test_no_version_has_other_places_than_its_population(catalog: Catalog) -> None:
    """Whatever came between the reading of a file and its version: an earlier size of the
    population, or an order of its own.
    """

    def visits(source: VaultTable, n: int) -> DatasetFacts:
        return catalog.add_version(
            name="visits", population=None, schema=SCHEMA, n=n, source=source, by="t"
        )

    first = VaultTable("reticent_1_3", 3 * 7, (), 3, "key")
    own = catalog.source(visits(first, 7).version_id)
    spine = catalog.population("visits").spine
    assert isinstance(own, VaultTable)
    assert spine is not None
    catalog.declare_places("visits", replace(spine, n=9, grows=True), by="t")
    wider = replace(own, n=3 * 9)
    for source, n in ((own, 7), (first, 9), (replace(wider, spine=""), 9), (wider, 7), (own, 9)):
        with pytest.raises(Conflict, match="places were changed"):
            visits(source, n)
    assert visits(wider, 9).n == 9
