# SPDX-License-Identifier: Apache-2.0
"""The server reads hypotheses by the client's rules: the same texts are accepted, and the same
refused.
"""

import pytest

from reticent_server.errors import InvalidQuery
from reticent_server.formula import parse_hypothesis
from support.client.hypothesis_texts import ACCEPTED, NAMES, REFUSED, Accepted


@pytest.mark.parametrize("example", ACCEPTED, ids=str)
def test_what_is_accepted(example: Accepted) -> None:
    found = parse_hypothesis(example.texts, NAMES)
    assert [list(row) for row in found.rows] == example.rows
    assert list(found.values) == pytest.approx(example.values)
    assert list(found.texts) == example.one_by_one


@pytest.mark.parametrize("texts", REFUSED)
def test_what_is_refused_is_not_repeated(texts: list[str]) -> None:
    with pytest.raises(InvalidQuery) as refused:
        parse_hypothesis(texts, NAMES)
    assert "secret" not in refused.value.detail
