# SPDX-License-Identifier: Apache-2.0
"""Good questions of every kind about the small installation's `people`: the examples that stand in
the kinds' rooms.
"""

from dataclasses import replace
from typing import Any

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import query_json
from reticent_server.kinds import KINDS

QUERIES: dict[str, dict[str, Any]] = {
    f"{kind.name} {number}": query_json(example)
    for kind in KINDS
    if kind.for_analysts
    for number, example in enumerate(kind.examples)
}
"""Every example of every kind, by kind and number, as it is sent."""

FIELDS: dict[str, dict[str, Any]] = {
    name.removesuffix(" 0"): {k: v for k, v in query.items() if k != "kind"}
    for name, query in QUERIES.items()
    if name.endswith(" 0")
}
"""The fields of the first example of every kind."""

_OF_TWO = {"formula": "y ~ x", "loss": "squared", "kind": "linear_regression"}
_COUNTS = {"formula": "k ~ x", "family": "poisson", "target": "likelihood", "kind": "glm"}
TWO_COLUMNS: dict[str, dict[str, Any]] = {
    "linear_regression by two": _OF_TWO | {"cluster": ["k", "j"]},
    "glm by two": _COUNTS | {"cluster": ["k", "j"]},
    "glm by two, yes or no": {"formula": "b ~ x", "family": "binomial", "kind": "glm"}
    | {"cluster": ["j", "k"]},
}
"""Questions by two columns of clusters: `people` has one that has ten levels, so `j` stands beside
it.
"""


def with_second_clusters(facts: DatasetFacts) -> DatasetFacts:
    """The same facts, and a column j that is declared as k is."""
    columns = facts.schema.columns
    (k,) = (column for column in columns if column.name == "k")
    return replace(facts, schema=replace(facts.schema, columns=(*columns, replace(k, name="j"))))
