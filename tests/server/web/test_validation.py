# SPDX-License-Identifier: Apache-2.0
"""What a request is told to change."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

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
        ({"more": 1}, "query holds a field that is not known here."),
    ],
)
def test_the_limit_that_was_missed_is_told(sent: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(LogRank).validate_python(ASKED | sent)
    errors = [{**each, "loc": ("body", "query", *each["loc"])} for each in refused.value.errors()]
    assert str(explained(errors)) == sentence
