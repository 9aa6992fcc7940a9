# SPDX-License-Identifier: Apache-2.0
"""Events are written as they were set up, also those that are written before structlog is there."""

import json
import subprocess
import sys

import pytest
import structlog

from reticent_server.api.logs import configure_logging
from reticent_server.events import EventLogger

PROGRAM = """
import sys
from reticent_server.api.logs import configure_logging
from reticent_server.events import EventLogger
log = EventLogger("reticent_server.some_module")
configure_logging("debug")
configure_logging("error")
assert "structlog" not in sys.modules
log.warning("not_written")
assert "structlog" in sys.modules
log.error("computation_failed", code="a_code", cell="4711")
configure_logging("warning")
log.warning("library_message")
"""


def test_the_first_event_is_written_as_was_asked_for_last() -> None:
    """Levels and the list of public fields hold from the first event on, though structlog comes
    with it.
    """
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    events = [json.loads(line) for line in done.stderr.splitlines()]
    assert events == [
        {"code": "a_code", "event": "computation_failed", "level": "error"},
        {"event": "library_message", "level": "warning"},
    ]
    assert done.stdout == ""


def test_where_structlog_is_in_use_it_is_set_up_at_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    try:
        configure_logging("error")
        structlog.get_logger("another").warning("not_written")
        EventLogger("x").error("written", code="c")
    finally:
        structlog.reset_defaults()
    assert json.loads(capsys.readouterr().err) == {
        "code": "c",
        "event": "written",
        "level": "error",
    }
