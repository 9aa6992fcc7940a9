# SPDX-License-Identifier: Apache-2.0
"""The client reads hypotheses by the server's rules: the same texts are accepted, and the same
refused.
"""

import pytest

import reticent
from reticent._hypothesis_grammar import parse
from support.client.hypothesis_texts import ACCEPTED, NAMES, REFUSED, Accepted


@pytest.mark.parametrize("example", ACCEPTED, ids=str)
def test_what_is_accepted(example: Accepted) -> None:
    texts, R, r = parse(example.texts, NAMES)
    assert R.tolist() == example.rows
    assert r.tolist() == pytest.approx(example.values)
    assert texts == example.one_by_one


@pytest.mark.parametrize("texts", REFUSED)
def test_what_is_refused(texts: list[str]) -> None:
    with pytest.raises(reticent.InvalidHypothesis):
        parse(texts, NAMES)
