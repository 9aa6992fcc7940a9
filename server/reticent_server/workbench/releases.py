# SPDX-License-Identifier: Apache-2.0
"""One's releases: history with search, one release, two compared, and exports. All of it is
free.
"""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from fastapi import Response

from reticent_server.domain.principal import Principal
from reticent_server.errors import InvalidRequest, NotFound
from reticent_server.pipeline import browse, deferred
from reticent_server.pipeline.services import Services
from reticent_server.web.dates import dated
from reticent_server.web.routing import pages_router
from reticent_server.web.tables import shown
from reticent_server.web.words import plain_words
from reticent_server.workbench import exports
from reticent_server.workbench.asking import Asking, Cancelling, asker
from reticent_server.workbench.columns import labels
from reticent_server.workbench.desk import is_study
from reticent_server.workbench.drafts import query_texts
from reticent_server.workbench.table_one import is_description

router = pages_router("workbench")

MOST = 500
"""Releases that the history searches: the newest."""

_LONGEST = 100


@router.get("/releases")
def history(visit: Asking) -> Response:
    """The newest releases that name a text: a data set, a kind, a column, a status."""
    text = visit.request.query_params.get("q", "").strip()[:_LONGEST]
    releases = _all(visit.services, asker(visit))
    found = [r for r in releases if text.casefold() in _searched(r).casefold()]
    return visit.page("releases.html", text=text, releases=found)


def _all(services: Services, principal: Principal) -> list[dict[str, Any]]:
    page: list[dict[str, Any]] = json.loads(browse.releases(services, principal, MOST, 0))[
        "releases"
    ]
    return page


def _searched(release: Mapping[str, Any]) -> str:
    asked = json.dumps(release["query"], ensure_ascii=False)
    return f"{release['id']} {release['dataset']} {release['status']} {asked}"


@router.get("/releases/{release_id}")
def release(visit: Asking, release_id: str) -> Response:
    """One release: its result, or when it is due. Somebody else's is not found."""
    document = _release(visit, release_id)
    result = document["result"]
    progress = document.get("progress")
    again = query_texts(document["query"]) | {"epsilon": f"{document['charged']['epsilon'] or 1:g}"}
    due = None
    if progress is not None:
        due = visit.services.clock.now() + timedelta(milliseconds=progress["remaining_ms"])
    return visit.page(
        "release.html",
        release=document,
        result=None if result is None else shown(_with_dates(visit, document)["result"]),
        words=plain_words(document["guarantee"]),
        due=_clock(due),
        wait=0 if progress is None else max(1, min(60, progress["remaining_ms"] // 1000 + 1)),
        again=f"/workbench/datasets/{document['dataset']}?{urlencode(again)}",
        formats=exports.formats(),
        axis=_axis(visit, document),
        has_desk=is_study(document),
        has_table_one=is_description(document),
    )


def _axis(visit: Asking, document: Mapping[str, Any]) -> str:
    """What stands below the axis of time: the column's label, or its name."""
    column = str(document["query"].get("time") or "")
    return labels(visit.services, asker(visit), document["dataset"]).get(column, column)


def _clock(due: datetime | None) -> str:
    return "" if due is None else f"{due:%Y-%m-%d %H:%M:%S}"


@router.post("/releases/{release_id}/cancel")
def cancel(visit: Cancelling, release_id: str) -> Response:
    """Gives back what a release has cost that has not begun."""
    deferred.cancel(visit.services, asker(visit), release_id)
    return visit.redirect(f"/workbench/releases/{release_id}")


@router.get("/compare")
def compare(visit: Asking) -> Response:
    """Two releases side by side, row by row of their first tables."""
    ids = visit.request.query_params.getlist("release")
    if len(ids) != 2:
        raise InvalidRequest("Choose two releases to compare.")
    documents = [_release(visit, each) for each in ids]
    if any(each["result"] is None for each in documents):
        raise InvalidRequest("Both releases must have an answer.")
    results = [shown(_with_dates(visit, each)["result"]) for each in documents]
    tables = [result.tables[0] if result.tables else None for result in results]
    named = [{row.name: row for row in table.rows} if table else {} for table in tables]
    names = list(dict.fromkeys(name for rows in named for name in rows))
    return visit.page(
        "compare.html",
        releases=documents,
        tables=tables,
        facts=[dict(result.facts) for result in results],
        rows=[(name, *(rows.get(name) for rows in named)) for name in names],
    )


@router.get("/releases/{release_id}/export/{form}")
def export(visit: Asking, release_id: str, form: str) -> Response:
    """The release as a file: a script that replays it for free, or a document."""
    document = _release(visit, release_id)
    made = exports.EXPORTS.get(form)
    if made is None or form not in exports.formats():
        raise NotFound("There is no such format here.")
    url = visit.server_url
    headers = {"Content-Disposition": f'attachment; filename="{document["id"]}{made.ending}"'}
    return visit.keep(
        Response(
            made.write(document if form == "json" else _with_dates(visit, document), url),
            media_type=made.media_type,
            headers=headers,
        )
    )


def _release(visit: Asking, release_id: str) -> dict[str, Any]:
    """Raises NotFound for a release that there is not, and for somebody else's, alike."""
    document: dict[str, Any] = json.loads(browse.release(visit.services, asker(visit), release_id))
    return document


def _with_dates(visit: Asking, document: dict[str, Any]) -> dict[str, Any]:
    """The release with dates in the place of days, as long as its data set says which columns are
    dates.
    """
    try:
        columns = visit.services.catalog.facts(document["dataset"]).schema.columns
    except NotFound:  # retired: the release stays, in days
        return document
    dates = {column.name for column in columns if column.is_date}
    if document["result"] is None or not dates:
        return document
    return {**document, "result": dated(document["query"], document["result"], dates)}
