# SPDX-License-Identifier: Apache-2.0
"""Sessions: what is not sealed here, or has ended, is no session."""

import pytest

from reticent_server.access.peppers import only
from reticent_server.web.sessions import (
    IDLE_SECONDS,
    LONGEST_SECONDS,
    REFRESH_SECONDS,
    Session,
    Sessions,
)
from support.databases.migrated import SetClock

ID = "0123456789abcdef" * 2


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def sessions(clock: SetClock) -> Sessions:
    return Sessions(only(b"p" * 32), clock)


def test_a_sealed_session_is_opened_again(sessions: Sessions) -> None:
    for session in (sessions.new(), sessions.new(ID)):
        assert sessions.open(sessions.seal(session)) == session
    assert (sessions.new().is_signed_in, sessions.new(ID).is_signed_in) == (False, True)
    assert sessions.new(ID).id == ID
    assert sessions.new().id != sessions.new().id


def test_every_changed_character_breaks_the_seal(sessions: Sessions) -> None:
    sealed = sessions.seal(sessions.new(ID))
    for i, character in enumerate(sealed):
        other = "0" if character != "0" else "1"
        assert sessions.open(sealed[:i] + other + sealed[i + 1 :]) is None
    for cookie in ("", ".", "é" * 80, sealed + "0", sealed[:-1], sealed.upper(), "\ud800." * 5):
        assert sessions.open(cookie) is None


def test_the_pepper_is_needed(sessions: Sessions, clock: SetClock) -> None:
    assert Sessions(only(b"q" * 32), clock).open(sessions.seal(sessions.new(ID))) is None


def test_a_form_token_is_no_seal_and_belongs_to_one_session(sessions: Sessions) -> None:
    one, other = sessions.new(ID), sessions.new(ID[::-1])
    token = sessions.form_token(one)
    assert sessions.is_form_token(one, token)
    assert sessions.form_token(one) != token
    assert not sessions.is_form_token(other, token)
    signed_out = Session(one.id, False, one.begun, one.seen)
    assert not sessions.is_form_token(signed_out, token)
    changed = ("0" if token[0] != "0" else "1") + token[1:]
    for bad in ("", "é", "é" * 96, token[:-1], token[1:], token + "0", changed, token[:32]):
        assert not sessions.is_form_token(one, bad)
    # Nor can a token be made to seal a session: the two are made for different purposes.
    assert sessions.open(f"{one.id}.curator.{token}") is None
    assert sessions.open(f"{one.id}.curator.{one.begun}.{one.seen}.{token[32:]}") is None


def test_an_idle_session_ends(sessions: Sessions, clock: SetClock) -> None:
    sealed = sessions.seal(sessions.new(ID))
    clock.sleep(IDLE_SECONDS)
    assert sessions.open(sealed) is not None
    clock.sleep(1)
    assert sessions.open(sealed) is None


def test_a_used_session_goes_on_and_ends_at_last(sessions: Sessions, clock: SetClock) -> None:
    session = sessions.new(ID)
    assert sessions.refreshed(session) is None
    while True:
        clock.sleep(IDLE_SECONDS - REFRESH_SECONDS)
        session = sessions.refreshed(session) or session
        if sessions.open(sessions.seal(session)) is None:
            break
        assert clock.now().timestamp() - session.begun <= LONGEST_SECONDS
    assert clock.now().timestamp() - session.begun > LONGEST_SECONDS
