# SPDX-License-Identifier: Apache-2.0
"""What a server looks after again and again: reservations that were charged and never settled, and
data sets whose rows cannot be read."""

from collections.abc import Mapping

from reticent_server.errors import ReticentError, SourceAway
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


def unreadable(services: Services, known: Mapping[str, str]) -> Mapping[str, str]:
    """The data sets whose rows cannot be read now, each with its cause. known: what this said
    before; the log names what is new."""
    found: dict[str, str] = {}
    for facts in services.catalog.list():
        try:
            services.readiness.require_source(facts.version_id)
        except SourceAway as away:
            found[facts.name] = away.cause
    for name, cause in found.items():
        if known.get(name) != cause:
            log.error("dataset_unreadable", dataset=name, cause=cause)
    for name in known.keys() - found.keys():
        log.info("dataset_readable", dataset=name)
    metrics.UNREADABLE.set(len(found))
    return found
