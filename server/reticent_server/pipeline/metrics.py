# SPDX-License-Identifier: Apache-2.0
"""What is counted of a serving process, for the curator's port.

Every label's values are from a short public list, so that no name, key or cell can become one.
Durations are of whole replies: a release is visible at its deadline only, so they do not depend on
when a computation ended. With several worker processes the library adds their numbers up (in files,
where PROMETHEUS_MULTIPROC_DIR is set before it is imported).
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

disable_created_metrics()  # type: ignore[no-untyped-call]  # times of first events, which nobody asked for

LABELS = {
    "method": frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "other"}),
    "status": frozenset(map(str, range(100, 600))),
    "outcome": frozenset({"reply", "no_reply", "failed"}),
    "reason": frozenset({"full", "left"}),
}
"""Allowed values; a route's template comes from the application's own list of routes."""

REGISTRY = CollectorRegistry()

REQUESTS = Counter(
    "reticent_requests", "Replies sent.", ("method", "route", "status"), registry=REGISTRY
)
# seconds: from a read to the long releases of a deadline of minutes
SECONDS = Histogram(
    "reticent_reply_seconds",
    "From a request to the end of its reply.",
    ("route",),
    registry=REGISTRY,
    buckets=(0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300),
)
RELEASES = Counter("reticent_releases", "Releases settled.", ("outcome",), registry=REGISTRY)
OVERRUNS = Counter(
    "reticent_deadline_overruns", "Releases later than their deadline.", registry=REGISTRY
)
FREE_WORK_WAITING = Gauge(
    "reticent_free_work_waiting",
    "Plans, forecasts and previews that wait for their turn.",
    registry=REGISTRY,
    multiprocess_mode="livesum",
)
FREE_WORK_REFUSED = Counter(
    "reticent_free_work_refused",
    "Plans, forecasts and previews that were not made: too many waited (full), or the caller had "
    "hung up (left).",
    ("reason",),
    registry=REGISTRY,
)
UNREADABLE = Gauge(
    "reticent_datasets_unreadable",
    "Data sets whose rows cannot be read now; nothing is charged for them.",
    registry=REGISTRY,
    multiprocess_mode="livemax",
)
ANCHORINGS_FAILED = Counter(
    "reticent_anchorings_failed",
    "Times at which the ledger's head could not be written down or looked for.",
    registry=REGISTRY,
)
RECOVERIES = Counter("reticent_recoveries", "Abandoned releases finished.", registry=REGISTRY)

for each in sorted(LABELS["outcome"]):
    RELEASES.labels(each)  # a counter that begins with its first failure shows no increase
for each in sorted(LABELS["reason"]):
    FREE_WORK_REFUSED.labels(each)


def answered(method: str, route: str, status: int, seconds: float) -> None:
    """Counts one reply; `route` is a template of the application's."""
    REQUESTS.labels(_listed("method", method), route, _listed("status", str(status))).inc()
    SECONDS.labels(route).observe(seconds)


def settled(outcome: str) -> None:
    """Counts one release, when it becomes visible."""
    RELEASES.labels(_listed("outcome", outcome)).inc()


def _listed(label: str, value: str) -> str:
    return value if value in LABELS[label] else "other"
