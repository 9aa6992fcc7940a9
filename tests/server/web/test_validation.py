# SPDX-License-Identifier: Apache-2.0
"""What a request is told to change."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.log_rank.kind import LogRank
from reticent_server.web.validation import explained

ASKED: dict[str, Any] = {"kind": "log_rank", "time": "t", "event": "e", "by": "g"}


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({"emphasis": [-1, 1]}, "query.emphasis must be at least 0."),
        ({"emphasis": [0, 50]}, "query.emphasis must be at most 5."),
        ({"emphasis": [1]}, "query.emphasis has too few entries."),
        ({"time": None}, "query.time must be a string."),
        ({"more": 1}, "query has no field more."),
        ({"times": "t"}, "query has no field times; the nearest is time."),
        ({"emphases": [0, 1]}, "query has no field emphases; the nearest is emphasis."),
        ({"a b": 1}, "query holds a field that is not known here."),
        ({"é": 1}, "query holds a field that is not known here."),
        ({"x" * 41: 1}, "query holds a field that is not known here."),
        ({"secret": "4711"}, "query has no field secret."),
    ],
)
def test_the_limit_that_was_missed_is_told(sent: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(LogRank).validate_python(ASKED | sent)
    place = ("body", "query", "log_rank")
    errors = [{**each, "loc": (*place, *each["loc"])} for each in refused.value.errors()]
    assert str(explained(errors)) == sentence


def test_a_word_of_another_field_names_that_field() -> None:
    """As loss="likelihood" of a model whose field is target."""
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(Glm).validate_python(
            {"kind": "glm", "formula": "y ~ x", "family": "poisson", "loss": "likelihood"}
        )
    errors = [{**e, "loc": ("body", "query", "glm", *e["loc"])} for e in refused.value.errors()]
    assert str(explained(errors)) == "query has no field loss; the nearest is target."
