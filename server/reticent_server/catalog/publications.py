# SPDX-License-Identifier: Apache-2.0
"""Releases that are published to everybody with a grant on their data set: which they are, for
ever.

Each row is held against the chain before it is used: a release that was added in the database is
shown to nobody.
"""

from sqlalchemy import Connection, insert, select

from reticent_server.catalog.tables import published_releases
from reticent_server.chain.acts import Change, record
from reticent_server.chain.recorded import RecordedRows
from reticent_server.chain.repository import last_about
from reticent_server.errors import Conflict

_ENTRY = "publication_entry"


def publish(connection: Connection, release_id: str, dataset: str, *, by: str, at: str) -> None:
    """Publishes a release of a data set. Raises Conflict the second time."""
    row = {"release_id": release_id, "dataset": dataset}
    known = select(published_releases).where(published_releases.c.release_id == release_id)
    if connection.execute(known).one_or_none() is not None:
        raise Conflict("This release is published already.")
    connection.execute(insert(published_releases).values(row))
    act = Change("release.publish", published_releases, (release_id,), row)
    record(connection, [act], by=by, at=at)


def published(connection: Connection, recorded: RecordedRows, dataset: str) -> list[str]:
    """The ids of a data set's published releases, the last published first. Raises Unavailable
    where a row is not as the chain says."""
    entry = last_about(published_releases, published_releases.c.release_id).label(_ENTRY)
    query = select(published_releases, entry).where(published_releases.c.dataset == dataset)
    rows = connection.execute(query).mappings().all()
    for row in rows:
        recorded.check(connection, published_releases, (row["release_id"],), row, row[_ENTRY])
    return [row["release_id"] for row in sorted(rows, key=lambda row: -row[_ENTRY])]
