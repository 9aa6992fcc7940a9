# SPDX-License-Identifier: Apache-2.0
"""Good questions of every kind about the small installation's `people`: the examples that stand in
the kinds' rooms.
"""

from typing import Any

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
