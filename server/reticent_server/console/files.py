# SPDX-License-Identifier: Apache-2.0
"""The console's own files: a style sheet, an icon, and htmx (0BSD), as they are in the package."""

from pathlib import Path

from fastapi import Response

from reticent_server.console.routing import NOTHING, pages_router

router = pages_router()

_FOLDER = Path(__file__).parent / "static"
_TYPES = {
    "console.css": "text/css; charset=utf-8",
    "htmx.min.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_FILES = {name: (_FOLDER / name).read_bytes() for name in _TYPES}


@router.get("/static/{name}")
def static_file(name: str) -> Response:
    """One of the files; no other path is looked at."""
    if name not in _FILES:
        raise NOTHING
    headers = {"Cache-Control": "max-age=600"}
    return Response(_FILES[name], media_type=_TYPES[name], headers=headers)
