# SPDX-License-Identifier: Apache-2.0
"""Leases of processes that are gone are given up, and of no others: by number, beginning and
machine of the process.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from reticent_server import living
from reticent_server.ledger import tables
from reticent_server.ledger.reservations import LEASE_BYTES, QUEUED, holder_of, new_lease
from reticent_server.ledger.service import Fresh, Ledger
from support.ledger.accounts import ask, open_accounts

SAYS = "from reticent_server.living import own_mark; print(own_mark(), flush=True); input()"


@pytest.fixture
def other() -> "subprocess.Popen[str]":
    """Another process, which says its mark and waits."""
    path = os.pathsep.join(each for each in sys.path if each)
    return subprocess.Popen(
        [sys.executable, "-c", SAYS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )


def test_a_process_is_gone_when_it_was_killed(other: "subprocess.Popen[str]") -> None:
    """Too while nobody has asked how it ended, and when its number is another's."""
    with other:
        assert other.stdout is not None
        mark = other.stdout.readline().strip()
        assert len(mark) == living.MARK
        assert mark != living.own_mark()
        assert living.gone([mark, living.own_mark()]) == set()
        other.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
        assert living.gone([mark, living.own_mark()]) == {mark}
        other.wait()
        assert living.gone([mark, living.own_mark()]) == {mark}


def test_a_number_that_is_used_again_is_another_process() -> None:
    machine = living.own_mark()[: living.MARK // 2]
    earlier = living._mark(machine, os.getpid(), "1")
    assert living.gone([earlier, living.own_mark()]) == {earlier}


def test_processes_of_other_machines_are_nobody_s_business(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mine, theirs = living.own_mark(), "x" * living.MARK
    assert living.gone([theirs, "", "x", mine[:6]]) == set()
    earlier = living._mark(mine[:6], os.getpid(), "1")
    monkeypatch.setattr(living, "_everybody_is_seen", lambda: False)
    assert living.gone([earlier]) == set()
    monkeypatch.undo()
    monkeypatch.setattr(living, "_PROC", tmp_path)  # another system
    living._machine.cache_clear()
    try:
        assert living.gone([earlier]) == set()
        assert living._own_mark.__wrapped__(os.getpid()) == ""
    finally:
        living._machine.cache_clear()


def test_a_lease_has_its_holder_and_fits_its_column() -> None:
    leases = {new_lease() for _ in range(100)}
    assert len(leases) == 100
    assert {holder_of(QUEUED + lease) for lease in leases} == {living.own_mark()}
    assert holder_of("abcdefghijklmnopqrstuv") == ""  # of an earlier version
    length = tables.releases.c.lease.type.length
    assert len(QUEUED) + living.MARK + 1 + LEASE_BYTES * 4 // 3 <= length


@pytest.mark.parametrize("start_ms", [None, 10**13])
def test_leases_of_the_dead_are_given_up_and_no_others(
    ledger: Ledger, engine: Engine, start_ms: int | None
) -> None:
    """At once, or waiting in the queue of a process that is gone."""
    open_accounts(ledger)
    mine, dead, elsewhere = (ask(ledger, start_ms=start_ms) for _ in range(3))
    assert isinstance(mine, Fresh)
    assert isinstance(dead, Fresh)
    assert isinstance(elsewhere, Fresh)
    gone = living._mark(living.own_mark()[:6], os.getpid(), "1")
    for outcome, mark in ((dead, gone), (elsewhere, "x" * living.MARK)):
        lease = outcome.reservation.lease.replace(living.own_mark(), mark)
        with engine.begin() as connection:
            statement = text("UPDATE ledger_releases SET lease = :lease WHERE id = :id")
            connection.execute(statement, {"lease": lease, "id": outcome.reservation.id})
    assert ledger.stale() == ()
    assert ledger.give_up_of_the_dead() == 1
    assert ledger.stale() == (dead.reservation.id,)
    assert ledger.give_up_of_the_dead() == 0
    again = ledger.take_over if start_ms is None else ledger.queue_again
    assert again(dead.reservation.id) is not None
    assert ledger.verify() == []
