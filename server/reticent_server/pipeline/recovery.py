# SPDX-License-Identifier: Apache-2.0
"""Finishing what another process left behind: reservations that were charged and never settled."""

from reticent_server.errors import ReticentError
from reticent_server.events import EventLogger
from reticent_server.pipeline import deferred, metrics
from reticent_server.pipeline.answer import resume
from reticent_server.pipeline.services import Services

log = EventLogger(__name__)


def recover(services: Services) -> int:
    """Computes every abandoned release under a lease of its own; how many were finished.

    One whose computation had not begun gets a turn of this process's queue, and can still be
    cancelled.

    Nothing is charged: the reservations are. One that cannot be finished now (the vault does not
    answer) stays pending until its lease expires again. Leases of processes of this machine that
    are gone (killed, say) are given up first, so that nobody waits for their end.
    """
    finished = 0
    given_up = services.ledger.give_up_of_the_dead()
    if given_up:
        log.warning("leases_of_dead_processes", leases=given_up)
    for release_id in services.ledger.stale():
        with services.settler.giving_up_undecided():
            queued = services.ledger.queue_again(release_id)
            taken = None if queued else services.ledger.take_over(release_id)
        if queued is not None:
            deferred.queue_again(services, queued)
        if taken is None:
            continue
        try:
            resume(services, taken)
        except ReticentError as error:
            log.warning("recovery_postponed", release_id=release_id, code=error.code)
        else:
            finished += 1
            metrics.RECOVERIES.inc()
    return finished
