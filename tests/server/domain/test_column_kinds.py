# SPDX-License-Identifier: Apache-2.0
"""A column kind is one line of a table: what `ordered` can be asked, and which files of the
repository name it.
"""

import re
from typing import Any, get_args

import pyarrow as pa
import pytest

from reticent_server.api.replies import ColumnReply
from reticent_server.catalog.schema_file import parse_schema
from reticent_server.domain.column_kind import TRAITS, ColumnKind, published_kind
from reticent_server.domain.schema import Column, Schema
from reticent_server.errors import CuratorError, InvalidFormula, InvalidQuery
from reticent_server.formula import mask_design, parse_formula
from reticent_server.kinds import registry
from reticent_server.kinds.count.kind import Count
from reticent_server.kinds.kruskal.kind import Kruskal
from reticent_server.kinds.mean.kind import Mean
from reticent_server.kinds.median.kind import Median
from reticent_server.kinds.quantiles.kind import Quantiles
from reticent_server.kinds.sum.kind import Sum
from reticent_server.vault.cells import Encoded, encode
from support.documents.code_blocks import ROOT
from support.kinds.named_tests import offer
from support.kinds.recipes import answer, block_of, facts_of, numeric
from support.seeds import seeded

LEVELS = ("none", "school", "college", "degree")
SCHOOLING = Column("schooling", ColumnKind.ORDERED, 0, len(LEVELS) - 1, LEVELS)
G = Column("g", ColumnKind.CATEGORICAL, 0, 1, ("u", "v"))
N = 2000
FOLDERS = ("server", "client", "r", "docs", "tools")
NAMES = re.compile(r"ColumnKind\.ORDERED|kind: ordered|\"ordered\"|`ordered`")


def schooling() -> dict[str, Any]:
    rng = seeded(0)
    levels = rng.choice(4, N, p=[0.1, 0.2, 0.5, 0.2]).astype(float)
    return {"schooling": levels, "g": (levels > 1.0).astype(float), "y": levels / 4}


def asked(query: Any) -> Any:
    facts = facts_of(N, (SCHOOLING, G, numeric("y", 0, 1)))
    return answer(registry.plan(facts, query, offer(20)), block_of(**schooling()))


def test_every_kind_has_its_line_and_its_word_in_the_interface() -> None:
    assert set(TRAITS) == set(ColumnKind)
    words = get_args(ColumnReply.model_fields["kind"].annotation)
    for kind in ColumnKind:
        assert kind.word in words
        ordered = kind.has_levels and kind.has_order
        assert published_kind(kind.word, ordered=ordered) is kind
    text = (ROOT / "docs/reference/schema-file.md").read_text("utf-8")
    for kind in ColumnKind:
        assert f"| `{kind}` |" in text


def test_an_addition_touches_at_most_seven_files_of_the_repository() -> None:
    named = [
        path.relative_to(ROOT).as_posix()
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".md", ".R", ".json", ".html"}
        and ".venv" not in path.parts
        and "adr" not in path.parts  # what was decided names its example
        and NAMES.search(path.read_text("utf-8"))
    ]
    assert sorted(named) == [
        "client/reticent/_schema.py",
        "docs/reference/schema-file.md",
        "r/R/protocol.R",
        "server/reticent_server/domain/column_kind.py",
        "server/reticent_server/pipeline/documents.py",
        "server/reticent_server/twin.py",
    ]
    assert "ordered" in ColumnReply.model_fields  # the seventh


def test_it_is_declared_and_read_as_levels() -> None:
    body = {"kind": "ordered", "levels": {"low": ["1", "2"], "high": ["3"]}}
    (column,) = parse_schema({"columns": {"grade": body}}).columns
    assert column.kind is ColumnKind.ORDERED
    assert (column.lower, column.upper, column.shown(1.0)) == (0.0, 1.0, "high")
    encoded = encode(column, pa.array(["3", "1", "2"]), strict=True)
    assert isinstance(encoded, Encoded)
    assert encoded.values.tolist() == [1.0, 0.0, 0.0]
    with pytest.raises(CuratorError, match="ordered"):
        parse_schema({"columns": {"grade": {"kind": "ordered", "lower": 0, "upper": 1}}})


def test_conditions_compare_levels() -> None:
    table = schooling()
    exact = float((table["schooling"] >= 2).sum())
    for where in ('schooling >= "college"', '"college" <= schooling', 'schooling > "school"'):
        assert abs(asked(Count(where))["value"] - exact) < 3
    schema = Schema((SCHOOLING, G))
    with pytest.raises(InvalidFormula, match="declared level"):
        mask_design((), schema, "schooling >= 2")
    with pytest.raises(InvalidFormula, match="has no order"):
        mask_design((), schema, 'g >= "u"')


def test_it_has_quantiles_and_ranks_and_no_sum() -> None:
    assert asked(Median("schooling"))["value"] == 2.0
    assert asked(Quantiles("schooling", (0.05, 0.99)))["values"] == [0.0, 3.0]
    assert asked(Kruskal("schooling", "g"))["p_value"] < 1e-6
    for query in (Mean("schooling"), Sum("schooling")):
        with pytest.raises(InvalidQuery):
            asked(query)


def test_it_is_a_factor_in_a_formula() -> None:
    schema = Schema((SCHOOLING, numeric("y", 0, 1)))
    design = parse_formula("y ~ schooling", schema)
    assert len(design.terms) == len(LEVELS) - 1
    assert design.names[1] == "schooling[school]"
