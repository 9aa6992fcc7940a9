# SPDX-License-Identifier: Apache-2.0
"""Anchoring while a server runs: the last entry is written down again and again, and looked for
first.

A database that is put back to an older state under a running server would let it spend the same
budget twice; so every process of a server looks, and ends itself when the last anchor is gone from
the chain.
"""

from threading import Event

from reticent_server.chain.anchors import Anchors
from reticent_server.errors import ReticentError
from reticent_server.events import EventLogger
from reticent_server.pipeline import metrics
from reticent_server.pipeline.services import Services

log = EventLogger(__name__)


def keep_anchored(services: Services, ended: Event, *, writes: bool) -> bool:
    """Until `ended`; False as soon as the last anchor is not in the chain.

    writes: whether this process writes anchors down; of the workers of a server, one does.
    """
    settings = services.settings
    if settings.anchor_file is None:
        return True
    anchors = Anchors(settings.anchor_file)
    while not ended.wait(settings.anchor_seconds):
        if not _anchored(services, anchors, writes=writes):
            log.error("anchor_missing")
            return False
    return _anchored(services, anchors, writes=writes)


def _anchored(services: Services, anchors: Anchors, *, writes: bool) -> bool:
    """Whether the last anchor is in the chain; then the head is the next one, if it has moved.

    True where that cannot be known now: the database, or the anchors' disk, does not answer.
    """
    try:
        last = anchors.last()
        if last is not None and not services.ledger.has(last):
            return False
        if writes:
            _write_down(services, anchors, None if last is None else last.seq)
    except ReticentError as error:
        log.error("anchoring_failed", code=error.code)
        metrics.ANCHORINGS_FAILED.inc()
    return True


def _write_down(services: Services, anchors: Anchors, last: int | None) -> None:
    head = services.ledger.anchor()
    if head.seq != last:
        anchors.write(head)
