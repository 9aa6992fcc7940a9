# SPDX-License-Identifier: Apache-2.0
"""The pair of neighbouring data sets through HTTP: draws written down and played back, and a server
that makes the mistake that a test has made here.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from reticent_server.app import create_app
from support.attacks.black_box import least_rho
from support.attacks.neighbouring_pair import SIDES, Outcome, Pair, Prober
from support.attacks.recorder import Call, Recorder, recording, total
from support.installations.in_thread import in_thread
from support.installations.small import Api, opened


def drawn(
    api: Api,
    side: str,
    query: Mapping[str, Any],
    privacy: Mapping[str, float],
    replayed: list[Call] | None,
) -> Any:
    """A release's calls, its reply without the names, and its charge."""
    recorder = Recorder(replayed)
    with recording(recorder):
        reply = api.post("/v1/releases", {"dataset": side, "query": query, "privacy": privacy})
    assert reply.status_code == 201, reply.text
    release = reply.json()
    assert release["status"] in {"reply", "no_reply"}
    return recorder.calls, (release["status"], release["result"]), release["charged"]["rho"]


def share(pair: Pair, query: Mapping[str, Any], privacy: Mapping[str, float]) -> float:
    """Of what is charged, what the draws of the pair can lose."""
    with opened(pair.installation.settings) as services:
        api = Api(services, pair.key)
        calls, told, rho = drawn(api, SIDES[0], query, privacy, None)
        again, told_again, rho_again = drawn(api, SIDES[1], query, privacy, calls)
    assert rho == rho_again
    assert told == told_again, "a reply depends on more than what was drawn"
    return total(calls, again).rho / float(rho)


@contextmanager
def served_here(pair: Pair) -> Iterator[Prober]:
    """A server in a thread of this process."""
    with opened(pair.installation.settings) as own, in_thread(create_app(own)) as served:
        yield Prober(served.url, pair.key)


def proved(found: Mapping[str, Sequence[Outcome]]) -> float:
    """A ρ that the outcomes of the two sides prove to be spent. The number of a reply that tells
    most is chosen on the halves that the events are chosen on.
    """
    left, right = (found[side] for side in SIDES)
    half = len(left) // 2
    at = _telling(left[:half], right[:half])
    sides = [[_at(outcome, at) for outcome in side] for side in (left, right)]
    return max(least_rho(sides[0], sides[1]), least_rho(sides[1], sides[0]))


def _telling(left: Sequence[Outcome], right: Sequence[Outcome]) -> int:
    """The place of the number whose medians differ most, by what lies between its quartiles."""
    every = [outcome.numbers for outcome in (*left, *right) if outcome.numbers]
    size = min(map(len, every), default=0)
    if not size:
        return 0
    sides = [
        np.array([o.numbers[:size] for o in side if o.numbers]).reshape(-1, size)
        for side in (left, right)
    ]
    if not all(map(len, sides)):
        return 0
    low, middle, high = np.quantile(np.concatenate(sides), (0.25, 0.5, 0.75), axis=0)
    spread = np.maximum(high - low, 1e-12 * (1 + np.abs(middle)))
    gap = np.abs(np.median(sides[0], axis=0) - np.median(sides[1], axis=0)) / spread
    return int(np.argmax(gap))


def _at(outcome: Outcome, place: int) -> Outcome:
    """The outcome by that number; 0 where it has none, as events by status tell it apart."""
    return replace(outcome, value=(*outcome.numbers, *([0.0] * (place + 1)))[place])


def numbers(result: Any) -> tuple[float, ...]:
    """Every number of a reply, in the order of its text."""
    found: list[float] = []

    def each(text: str) -> float:
        found.append(float(text))
        return found[-1]

    json.loads(json.dumps(result), parse_float=each, parse_int=each)
    return tuple(found)
