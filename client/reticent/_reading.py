# SPDX-License-Identifier: Apache-2.0
"""A release's JSON document as the class of its kind."""

import json
from collections.abc import Mapping
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from reticent._errors import UnexpectedReply
from reticent._http import Http, parsed
from reticent._release import NoReply, Release
from reticent.kinds import class_of

_PAGE = 100
"""Releases asked for at once: the server's most."""


def read(document: Any) -> Release:
    """The release of a document. Raises UnexpectedReply where members are absent or do not fit."""
    return parsed(_read, document)


def read_all(http: Http, path: str) -> list[Release]:
    """The releases of all pages at a path."""
    releases: list[Release] = []
    offset: int | None = 0
    while offset is not None:
        documents, offset = parsed(_page, http.get(f"{path}?limit={_PAGE}&offset={offset}"))
        releases += map(read, documents)
    return releases


def load(path: str | PathLike[str]) -> Release:
    """The release that `save` (or anything else that keeps the server's JSON) wrote to a file.

    Raises OSError where the file cannot be read, UnexpectedReply where it holds something else.

    >>> ds.count(epsilon=0.1).save("release.json")
    >>> reticent.load("release.json").guarantee
    """
    text = Path(path).read_bytes()
    try:
        return read(parsed(json.loads, text))
    except UnexpectedReply as error:
        raise UnexpectedReply(
            f"{path} holds no release that this version of the client can read; release.save(path) "
            "writes one."
        ) from error


def release_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a release's document, for whoever reads releases without this
    package.

    >>> sorted(reticent.release_schema()["required"])
    """
    text = files("reticent").joinpath("release.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def _page(content: Any) -> tuple[list[Any], int | None]:
    after = content["next_offset"]
    return list(content["releases"]), None if after is None else int(after)


def _read(document: Mapping[str, Any]) -> Release:
    kind = class_of(document["query"]) if document["status"] == "reply" else NoReply
    release = kind(document)
    release.check()
    return release
