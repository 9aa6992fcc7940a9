# SPDX-License-Identifier: Apache-2.0
"""The public verification page: a release word for word is recorded; anything else is not, and no
reply says why.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent_server.domain.query import Privacy
from reticent_server.kinds.count.kind import Count
from reticent_server.pipeline.answer import Ask, answer
from reticent_server.verification.checking import LONGEST_ID, checked
from reticent_server.web.words import plain_words
from support.installations.bench import Bench


def verdict(bench: Bench, text: str) -> str:
    reply = bench.browser().post("/verify", data={"release": text})
    assert reply.status_code == 200
    return reply.text


def test_a_release_is_recorded_word_for_word(bench: Bench) -> None:
    ana = bench.services.access.authenticate(bench.keys["ana"])
    assert ana is not None
    body = answer(bench.services, ana, Ask("people", Count(), Privacy(1.0))).decode()
    document = json.loads(body)
    assert "<strong>Recorded.</strong>" in verdict(bench, body)
    assert "<strong>Recorded.</strong>" in verdict(bench, json.dumps(document, indent=2))
    twice = body.replace('"result":', '"result":{"value":1000000},"result":', 1)
    assert json.loads(twice) == document  # whose last one counts
    assert "<strong>Recorded.</strong>" not in verdict(bench, twice)
    document["result"]["value"] += 1
    changed = verdict(bench, json.dumps(document))
    absent = verdict(bench, json.dumps({**document, "id": "rel_absent"}))
    for page in (changed, absent):
        assert "<strong>Not recorded.</strong>" in page
        assert "<strong>Recorded.</strong>" not in page


def test_what_is_no_release_is_said_and_never_markup(bench: Bench) -> None:
    for text in ("", "[]", "{}", "[" * 10_000, '{"id": "<script>"}', "NaN"):
        page = verdict(bench, text)
        assert "That is no release" in page
        assert "<script>" not in page
    assert bench.browser().get("/verify").status_code == 200


def test_it_is_asked_so_often_and_no_more(bench: Bench) -> None:
    browser = bench.browser()
    limit = bench.services.settings.sign_ins_per_minute
    replies = [
        browser.post("/verify", data={"release": "{}"}).status_code for _ in range(limit + 1)
    ]
    assert replies[0] == 200
    assert replies[-1] == 429


RELEASE: dict[str, Any] = {
    "id": "rel_x",
    "dataset": "people",
    "version": 1,
    "status": "reply",
    "query": {"kind": "count"},
    "created_at": "2026-01-01",
    "guarantee": {
        "tier": "unconditional",
        "unit": "row",
        "epsilon": 1.0,
        "delta": 1e-6,
        "mechanism": "discrete Gaussian",
        "statement": "A statement.",
        "assumptions": [],
    },
}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
NUMBERS = st.floats() | st.integers(-(10**400), 10**400) | st.sampled_from([1e-320, 5e-324, -1e9])
MEMBERS = st.sampled_from(sorted(RELEASE))
PROMISES = st.sampled_from(sorted(RELEASE["guarantee"]))


class _Books:
    """A ledger in which nothing is found, however long what is searched for; a database refuses
    longer ones.
    """

    def head(self) -> str:
        return "0" * 64

    def search(self, words: list[str]) -> tuple[()]:
        assert all(len(word) <= LONGEST_ID for word in words)
        return ()


class _Services:
    ledger = _Books()


def shown(document: object) -> bool:
    """Whether the page would show it; it is then shown, as far as words go, without an error."""
    verdict = checked(_Services(), json.dumps(document))  # type: ignore[arg-type]
    if verdict.document is None:
        return False
    words = plain_words(verdict.document["guarantee"])
    assert all(0 <= belief.before <= belief.after <= 1 for belief in words.beliefs)
    "".join([words.who, words.failure, words.reach, *words.assumptions]).encode()
    f"{verdict.document['guarantee']['epsilon']:.6g}"
    return True


@pytest.mark.slow
@given(PROMISES, ANYTHING)
def test_no_member_of_a_guarantee_ends_in_an_error(member: str, value: object) -> None:
    shown({**RELEASE, "guarantee": {**RELEASE["guarantee"], member: value}})


@given(NUMBERS, NUMBERS)
def test_no_epsilon_and_delta_end_in_an_error(epsilon: float, delta: float) -> None:
    guarantee = {**RELEASE["guarantee"], "epsilon": epsilon, "delta": delta}
    was_shown = shown({**RELEASE, "guarantee": guarantee})
    assert was_shown == (0 <= epsilon < 2**1024 and 0 <= delta <= 1)


@given(MEMBERS, ANYTHING)
def test_no_member_of_a_release_ends_in_an_error(member: str, value: object) -> None:
    shown({**RELEASE, member: value})


@pytest.mark.slow
@given(st.text(max_size=200) | ANYTHING.map(json.dumps))
def test_no_text_ends_in_an_error(text: str) -> None:
    checked(_Services(), text)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "guarantee",
    [
        {"epsilon": -1e9},
        {"delta": 1e-320},
        {"epsilon": 10**400},
        {"epsilon": True},
        {"statement": "\ud800"},
        {"assumptions": [[[]]]},
    ],
)
def test_the_page_answers_whatever_a_guarantee_says(
    bench: Bench, guarantee: dict[str, object]
) -> None:
    given_as = {**RELEASE, "guarantee": RELEASE["guarantee"] | guarantee}
    is_shown = "What the text says" in verdict(bench, json.dumps(given_as))
    assert is_shown == (guarantee == {"delta": 1e-320})
    assert "That is no release" in verdict(bench, json.dumps({**RELEASE, "id": "a" * 60_000}))
