# SPDX-License-Identifier: Apache-2.0
"""Tables of the command line, at any width."""

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import Engine

from reticent_server.cli import common
from reticent_server.database import connect, reading
from reticent_server.errors import InvalidRequest, NotFound

IDENTIFIER = "rel_8RJs6KZNtG_ariTvMTLYlXXmf0"
ROWS = [
    {"seq": 5, "data set": "population houses", "change": "rho +0.024356", "about": IDENTIFIER},
    {"seq": 6, "data set": "[b]houses", "change": None, "about": IDENTIFIER},
]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_nothing_is_cut_off(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(common.out, "_width", width)
    common.show(ROWS, as_json=False, title="Entries")
    shown = capsys.readouterr().out
    joined = "".join(character for character in shown if character not in " ┃│\n")
    assert "…" not in shown
    for part in ("Entries", "population", "+0.024356", "[b]houses"):
        assert part in shown
    assert shown.count("rel_8RJs6K") == 2
    assert joined.count(IDENTIFIER) == 2 or width == 60  # there the end of it is on another line
    assert ("about: " + IDENTIFIER in shown) == (width < 60)
    assert ("┃" in shown) == (width >= 60)


@pytest.mark.parametrize("error", [NotFound("No such data set."), InvalidRequest("Not so.")])
def test_what_is_absent_is_answered_with_where_the_names_are(
    error: NotFound | InvalidRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    @common.command(None)
    def command() -> None:
        raise error

    with pytest.raises(common.typer.Exit):
        command()
    told = capsys.readouterr().err
    assert told.startswith(f"reticent: {error.detail}")
    assert ("reticent dataset list" in told) == isinstance(error, NotFound)


def test_the_connections_of_a_command_end_with_it(tmp_path: Path) -> None:
    engines: list[Engine] = []

    @common.command(None)
    def command(fails: bool) -> None:
        engines.append(connect(f"sqlite:///{tmp_path / 'x.db'}"))
        with reading(engines[-1]):
            pass
        assert engines[-1].pool.checkedin() == 1  # type: ignore[attr-defined]
        if fails:
            raise NotFound("No such data set.")

    command(False)
    with pytest.raises(common.typer.Exit):
        command(True)
    assert [engine.pool.checkedin() for engine in engines] == [0, 0]  # type: ignore[attr-defined]
    outside = connect(f"sqlite:///{tmp_path / 'x.db'}")
    with reading(outside):
        pass
    assert outside.pool.checkedin() == 1  # type: ignore[attr-defined]
    outside.dispose()


def test_a_connection_that_was_in_use_when_its_engine_ended_is_closed_when_it_comes_back(
    tmp_path: Path,
) -> None:
    engine = connect(f"sqlite:///{tmp_path / 'x.db'}")
    with reading(engine) as connection:
        held = connection.connection.dbapi_connection
        engine.dispose()
    assert held is not None
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        held.execute("SELECT 1")  # type: ignore[attr-defined]
    with reading(engine) as connection:
        assert connection.connection.is_valid
    engine.dispose()
