# SPDX-License-Identifier: Apache-2.0
"""One schema with a column of every kind."""

import pytest

from reticent_server.domain.schema import Column, Schema
from reticent_server.domain.schema import ColumnKind as Kind


@pytest.fixture(scope="session")
def schema() -> Schema:
    return Schema(
        (
            Column("y", Kind.NUMERIC, 0, 100),
            Column("x1", Kind.NUMERIC, -1, 5, missing=("NA",)),
            Column("x2", Kind.NUMERIC, 0.5, 5),
            Column("zero", Kind.NUMERIC, 0, 10),
            Column("a", Kind.NUMERIC, -1, 1),
            Column("b", Kind.BOOLEAN, 0, 1),
            Column("i", Kind.INTEGER, 0, 1),
            Column("grade", Kind.INTEGER, 1, 6),
            Column("zip", Kind.INTEGER, 0, 99_999),
            Column("g", Kind.CATEGORICAL, 0, 2, ("u", "v", "w"), missing=("?",)),
            Column("h", Kind.CATEGORICAL, 0, 1, ("0", "1")),
            Column("k", Kind.CATEGORICAL, 0, 1, ('say "no"', "Zürich")),
            Column("one", Kind.CATEGORICAL, 0, 0, ("only",)),
            Column("huge", Kind.NUMERIC, 0, 1e300),
            Column("flat", Kind.NUMERIC, 3, 3),
            Column("sq ft", Kind.NUMERIC, 0, 10),
            Column("log", Kind.NUMERIC, 1, 2),
        )
    )
