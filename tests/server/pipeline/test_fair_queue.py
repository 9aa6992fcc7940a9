# SPDX-License-Identifier: Apache-2.0
"""The fair queue: turns of planned length, one an owner at a time, equal planned time for all who
wait.
"""

from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent_server.pipeline.fair_queue import FairQueue, Waiting


@dataclass
class Run:
    """A queue with a clock. turns: (owner, id, start, end) of all that began."""

    queue: FairQueue
    now: int = 0
    count: int = 0
    turns: list[tuple[str, str, int, int]] = field(default_factory=list)

    def add(self, owner: str, duration: int = 100) -> str:
        self.count += 1
        self.queue.add(Waiting(f"r{self.count}", owner, duration, self.now))
        return f"r{self.count}"

    def until(self, end: int, step: int = 1) -> None:
        """Begins every turn until `end`, looking every `step` ms, as a busy machine might."""
        while self.now < end:
            while (found := self.queue.begin(self.now)) is not None:
                waiting, start = found
                assert start <= self.now
                self.turns.append((waiting.owner, waiting.id, start, start + waiting.duration_ms))
            self.now += step


def run(slots: int) -> Run:
    return Run(FairQueue(slots))


def test_one_owner_s_turns_follow_each_other_on_one_slot() -> None:
    """However many wait: more than a hundred, too."""
    busy = run(4)
    ids = [busy.add("ana") for _ in range(150)]
    busy.until(200 * 100)
    assert [release for _, release, _, _ in busy.turns] == ids
    assert [start for _, _, start, _ in busy.turns] == [100 * k for k in range(150)]


def test_another_owner_begins_at_once_whatever_the_first_has_queued() -> None:
    busy = run(4)
    for _ in range(150):
        busy.add("ana")
    busy.until(50)
    busy.add("bob")
    assert busy.queue.expected_wait_ms("bob", 0, busy.now) == 0
    busy.until(52)
    assert busy.turns[-1] == ("bob", "r151", 50, 150)


@pytest.mark.slow
def test_more_owners_than_slots_get_equal_planned_times() -> None:
    busy, lengths = run(2), {"ana": 400, "bob": 100, "eve": 100, "dan": 50, "zoe": 25}
    for owner, length in lengths.items():
        for _ in range(40_000 // length):
            busy.add(owner, length)
    busy.until(40_000)
    served: Counter[str] = Counter()
    for owner, _, start, end in busy.turns:
        served[owner] += end - start
    assert max(served.values()) - min(served.values()) <= 2 * max(lengths.values())
    assert sum(served.values()) >= 2 * 40_000 - 2 * max(lengths.values())


def test_who_comes_late_is_not_owed_the_time_before() -> None:
    busy = run(1)
    for _ in range(100):
        busy.add("ana")
        busy.add("bob")
    busy.until(5_000)
    for _ in range(40):
        busy.add("eve")
    begun = len(busy.turns)
    busy.until(8_000)
    served = Counter(owner for owner, _, _, _ in busy.turns[begun:])
    assert set(served.values()) == {10}


def test_a_cancelled_release_takes_no_turn() -> None:
    busy = run(1)
    ids = [busy.add("ana") for _ in range(181)]
    for release in ids[1:]:
        assert busy.queue.drop(release)
    assert not busy.queue.drop(ids[5])
    busy.until(10)
    busy.add("bob")
    assert busy.queue.expected_wait_ms("bob", 0, busy.now) == 90
    busy.until(200)
    assert [(owner, start) for owner, _, start, _ in busy.turns] == [("ana", 0), ("bob", 100)]


def test_a_turn_of_something_cancelled_elsewhere_is_given_back() -> None:
    """Its turn begins, is found to be cancelled 3 ms later, and the next one begins then."""
    busy = run(1)
    busy.add("ana", 1_000)
    busy.add("bob", 100)
    found = busy.queue.begin(0)
    assert found is not None
    assert busy.queue.begin(3) is None
    busy.queue.skip(found[0], 3)
    busy.now = 3
    busy.until(5)
    assert busy.turns == [("bob", "r2", 3, 103)]


@pytest.mark.parametrize("step", [1, 7, 333])
def test_turns_are_planned_from_turns_and_not_from_when_somebody_looked(step: int) -> None:
    busy = run(1)
    for _ in range(10):
        busy.add("ana")
    busy.until(5_000, step)
    starts = [start for _, _, start, _ in busy.turns]
    assert starts == [100 * k for k in range(10)]


def test_the_expected_wait_is_what_comes_about_where_nobody_comes() -> None:
    for others in range(4):
        busy = run(2)
        for k in range(others):
            for _ in range(5):
                busy.add(f"other{k}")
        busy.until(1)
        own = [busy.add("ana") for _ in range(4)]
        expected = busy.queue.expected_wait_ms("ana", 300, busy.now)
        busy.until(5_000)
        (begun,) = [start for _, release, start, _ in busy.turns if release == own[-1]]
        assert abs(begun - 1 - expected) <= 200, others


def test_nothing_is_kept_of_those_who_wait_no_more() -> None:
    queue = FairQueue(2)
    for k in range(1_000):
        queue.add(Waiting(f"r{k}", f"owner{k}", 10, 20 * k))
        assert queue.begin(20 * k) is not None
    assert (queue._queues, queue._served, queue._level) == ({}, {}, 0)
    assert queue.next_begin_ms() is None
    assert list(queue) == []


asked = st.lists(
    st.tuples(st.sampled_from("abcde"), st.integers(0, 30), st.integers(1, 30)), max_size=40
)


@pytest.mark.slow
@given(asked, st.integers(1, 4))
def test_no_more_turns_at_once_than_slots_one_an_owner_and_nobody_waits_for_nothing(
    arrivals: list[tuple[str, int, int]], slots: int
) -> None:
    busy = run(slots)
    for owner, pause, length in arrivals:
        busy.until(busy.now + pause)
        busy.add(owner, length)
    busy.until(busy.now + 31 * 41)
    assert len(busy.turns) == len(arrivals)
    for owner, _, start, _ in busy.turns:
        at_once = [t for t in busy.turns if t[2] <= start < t[3]]
        assert len(at_once) <= slots
        assert [t[0] for t in at_once].count(owner) == 1
    own = [[t[1] for t in busy.turns if t[0] == owner] for owner in "abcde"]
    for ids in own:
        assert ids == sorted(ids, key=lambda name: int(name[1:]))
