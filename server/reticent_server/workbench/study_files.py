# SPDX-License-Identifier: Apache-2.0
"""Studies that an analyst brings as a file: a release's JSON, of this server or of another one, or
a pool of several that the client has saved.

A file waits where curators' files do (vault.staging), for a day, and nobody but its owner sees it.
It is a stranger's text: it must read as a study of the client, and what its analyses raise is said
to be the file's fault. Nothing here reads a record or charges anybody.
"""

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any, cast

from fastapi import Request
from fastapi.concurrency import run_in_threadpool

from reticent_server.errors import InvalidQuery, InvalidRequest
from reticent_server.intake.staged import Incoming, Staging, staging
from reticent_server.kinds.study.kind import KIND
from reticent_server.web.uploads import FileForm, receive
from reticent_server.web.visits import taken_once
from reticent_server.web.words import plain_words
from reticent_server.workbench.analyses import check_study
from reticent_server.workbench.asking import Asking, asker
from reticent_server.workbench.pools import (
    LOADED,
    MOST_SITES,
    RELEASED,
    bare,
    pool_of_file,
    pooled_document,
)

MOST_BYTES = 4 << 20
"""Of a file: far more than a study of as many columns, by as many groups, as can be asked for."""

_SECONDS = 60.0
"""Until a file has arrived."""

_NO_STUDY = (
    "The file holds no study that this version can read: save one with release.save(path) in "
    "Python, or as JSON on the page of its release."
)


async def receive_study(visit: Asking, request: Request) -> str:
    """Keeps a file whose form's token is known before the first byte, and gives its id; the oldest
    of its owner's makes room. Raises InvalidRequest for what is no study.
    """
    place, owner = _place(visit), _owner(visit)

    def opened(fields: Mapping[str, str], name: str) -> Incoming:
        taken_once(visit, fields)
        waiting = sorted(place.of(owner), key=lambda each: each.path.stat().st_mtime)
        for staged in waiting[: max(len(waiting) - MOST_SITES + 1, 0)]:
            place.discard(staged)
        return place.receive(owner, name, MOST_SITES)

    form = FileForm(request.headers.get("content-type", ""), opened, MOST_BYTES)
    await receive(request, form, MOST_BYTES, _SECONDS)
    staged = cast(Incoming, form.sink).keep()
    try:
        await run_in_threadpool(read_study, staged.path.read_bytes())
    except InvalidRequest:
        place.discard(staged)
        raise
    return staged.id


def loaded_study(visit: Asking, file_id: str) -> dict[str, Any]:
    """The document of a file of one's own. Raises NotFound, PolicyRefused."""
    staged = _place(visit).one(_owner(visit), file_id)
    document = read_study(staged.path.read_bytes())
    return document | {"id": file_id, RELEASED: document["id"], LOADED: staged.name}


def waiting_studies(visit: Asking) -> list[tuple[str, str]]:
    """(id, name of the file) of those that wait; none where the server takes no files."""
    if not visit.services.settings.upload_bytes:
        return []
    return [(staged.id, staged.name) for staged in _place(visit).of(_owner(visit))]


def read_study(content: bytes) -> dict[str, Any]:
    """The document of a study's file. Raises InvalidRequest for anything else."""
    try:
        document: dict[str, Any] = json.loads(content, parse_constant=_refused)
        sites = pool_of_file(document)
        for each in [document] if sites is None else sites.values():
            check_study(each)
            _shown(each)
        if sites is not None:
            bares = {name: bare(each) for name, each in sites.items()}
            return pooled_document(bares, document["weights"])
    except InvalidQuery:
        raise
    except Exception:  # noqa: BLE001 - a stranger's text may be wrong in any way
        raise InvalidRequest(_NO_STUDY) from None
    return bare(document)


def _refused(constant: str) -> None:
    """JSON has no NaN, and nothing infinite."""
    raise ValueError(constant)


def _shown(document: Mapping[str, Any]) -> None:
    """Raises where a page could not show what a document says beside its numbers."""
    result, guarantee = document["result"], document["guarantee"]
    texts = [document["dataset"], document["created_at"], guarantee["statement"]]
    texts += [guarantee["mechanism"], *result["terms"], *result["variables"]]
    amounts = [document["charged"]["epsilon"], guarantee["epsilon"], guarantee["delta"]]
    fits = document["query"]["kind"] == KIND.name and all(isinstance(each, str) for each in texts)
    if not fits or not all(map(isfinite, amounts)):
        raise TypeError("a study, with texts and numbers")
    plain_words(guarantee)


def _place(visit: Asking) -> Staging:
    return staging(visit.services.settings, visit.services.clock)


def _owner(visit: Asking) -> str:
    """Apart from the files of whoever is a curator, too."""
    return f"study {asker(visit).id}"
