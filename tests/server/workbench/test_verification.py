# SPDX-License-Identifier: Apache-2.0
"""The public verification page: a release word for word is recorded; anything else is not, and no reply says why."""

import json

from reticent_server.domain.query import Privacy
from reticent_server.kinds.count.kind import Count
from reticent_server.pipeline.answer import Ask, answer
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
