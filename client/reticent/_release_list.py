# SPDX-License-Identifier: Apache-2.0
"""Releases as a list that shows a line for each, and not every summary."""

from reticent._release import Release
from reticent._text import html_table, plain, text_table

_HEADER = ("release", "made", "data set", "kind", "about", "status", "epsilon")
_LONGEST = 32
"""Characters of what a query is about; the release itself has all of it."""


class ReleaseList(list[Release]):
    """A list of releases; `client.releases()[0]` is one of them."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "\n".join(text_table(_HEADER, self._rows())) if self else "No releases yet."

    def _repr_html_(self) -> str:
        return html_table(_HEADER, self._rows())

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                release.id,
                release.created_at[:16].replace("T", " "),
                release.dataset,
                str(release.query["kind"]),
                _about(release),
                release.status,
                plain(release.charged.epsilon),
            )
            for release in self
        ]


def _about(release: Release) -> str:
    """The formula or the column, shortened."""
    query = release.query
    found = query.get("formula") or query.get("column") or ", ".join(query.get("columns") or ())
    text = str(found or "")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
