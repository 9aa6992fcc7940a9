# SPDX-License-Identifier: Apache-2.0
"""The pages' own files (style sheets, scripts, an icon) as they are in the packages."""

from pathlib import Path

from fastapi import APIRouter, Response

from reticent_server.web.routing import NOTHING, pages_router

_SHARED = Path(__file__).parent / "static"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def files_router(name: str, folder: Path) -> APIRouter:
    """The shared files and those of a folder, below /name/static; no other path is looked at."""
    files = _files(_SHARED) | _files(folder)
    router = pages_router(name)

    @router.get("/static/{name}")
    def static_file(name: str) -> Response:
        if name not in files:
            raise NOTHING
        headers = {"Cache-Control": "max-age=600"}
        return Response(files[name], media_type=_TYPES[Path(name).suffix], headers=headers)

    return router


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in _TYPES}
