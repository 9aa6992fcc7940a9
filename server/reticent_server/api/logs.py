# SPDX-License-Identifier: Apache-2.0
"""Logging for a serving process: one JSON object a line, public fields, no times.

A line's time could tell when a computation ended, so none is written; whoever collects the lines
sees them after the deadlines that the plans fixed. What is not on the list is dropped, whoever logs
it: fields by name and by form, the texts of libraries, warnings (numpy warns of what is in the
cells), and the traces of threads.
"""

import logging
import re
import sys
import threading
import warnings
from collections.abc import Mapping
from functools import partial
from types import TracebackType

from reticent_server.events import EventLogger, set_up

PUBLIC_FIELDS = frozenset(
    {
        "event",
        "level",
        "method",
        "route",
        "status",
        "release",
        "release_id",
        "code",
        "error",
        "library",
        "worker",
        "exit_code",
        "row",
        "leases",
        "dataset",
        "cause",
    }
)
_EVENT = re.compile(r"[a-z]+(_[a-z]+){0,7}", re.ASCII)
_VALUE = re.compile(r"[A-Za-z_/][A-Za-z0-9_/{}:.-]{0,99}", re.ASCII)


def configure_logging(level: str) -> None:
    """Sends structlog's events to standard error as JSON; of the libraries' own, only that there
    was one, from warnings on.

    Several processes share standard error. A line that is written at once, its end included, is
    never mixed with another's, as long as it is shorter than what a pipe takes at once (4 KB).
    """
    set_up(partial(_configure, level))
    logging.basicConfig(level=logging.WARNING, handlers=[_Wordless()], force=True)


def _configure(level: str) -> None:
    import structlog  # noqa: PLC0415 - not before the first event: see reticent_server.events

    structlog.configure(
        processors=[
            structlog.stdlib.add_log_level,
            public_fields,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),  # a line in one write: see below
        cache_logger_on_first_use=False,
    )


def silence() -> None:
    """For a process that reads private cells: no warnings, and no traces of what went wrong."""
    warnings.simplefilter("ignore")
    threading.excepthook = _thread_failed
    sys.unraisablehook = _unraisable
    sys.excepthook = _failed


def public_fields(_logger: object, _method: str, event: Mapping[str, object]) -> dict[str, object]:
    """The fields on the list whose values are names, codes, ids or whole numbers."""
    kept = {k: v for k, v in event.items() if k in PUBLIC_FIELDS and _is_public(v)}
    if not _EVENT.fullmatch(str(event.get("event"))):
        kept["event"] = "unnamed"
    return kept


def _is_public(value: object) -> bool:
    if isinstance(value, str):
        return _VALUE.fullmatch(value) is not None
    return value is None or type(value) in (int, bool)


class _Wordless(logging.Handler):
    """Turns a library's record into an event without its words."""

    def emit(self, record: logging.LogRecord) -> None:
        library = record.name.partition(".")[0]
        EventLogger(__name__).warning("library_message", library=library)


def _thread_failed(failure: threading.ExceptHookArgs) -> None:
    EventLogger(__name__).error("thread_failed", error=failure.exc_type.__name__)


def _unraisable(failure: "sys.UnraisableHookArgs") -> None:
    EventLogger(__name__).error("unraisable", error=failure.exc_type.__name__)


def _failed(kind: type[BaseException], _error: BaseException, _trace: TracebackType | None) -> None:
    EventLogger(__name__).error("process_failed", error=kind.__name__)
