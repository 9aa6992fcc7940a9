# SPDX-License-Identifier: Apache-2.0
"""Everything that is wrong with a file, in one message: it may quote cells, because only the
curator reads it.
"""

from dataclasses import dataclass, field

from reticent_server.errors import CuratorError
from reticent_server.vault.blocks import FileBlock
from reticent_server.vault.cells import NAMED, Fault

MOST_COLUMNS = 20
"""Columns with problems that are named: more of them are one mistake, such as another separator."""


@dataclass(slots=True)
class _Reason:
    """places: the first rows, in words. count: of cells."""

    order: tuple[int, int]
    places: list[str]
    count: int


@dataclass(slots=True)
class Problems:
    """Collected over the blocks of a file; `refuse` raises what was found."""

    _columns: dict[str, dict[str, _Reason]] = field(default_factory=dict, repr=False)
    _counts: dict[str, int] = field(default_factory=dict, repr=False)

    def add(self, block: FileBlock, column: str, position: int, fault: Fault) -> None:
        """position: of the column in the schema, for the order of what is named."""
        self._counts[column] = self._counts.get(column, 0) + fault.count
        known = self._columns.setdefault(column, {})
        for reason, rows, count in fault.found:
            if reason in known:
                known[reason].count += count
            elif len(known) < NAMED:
                places = [block.place(row) for row in rows]
                known[reason] = _Reason((block.start + rows[0], position), places, count)

    def __bool__(self) -> bool:
        return bool(self._columns)

    def refuse(self, also: str = "") -> None:
        """Raises CuratorError where anything was found. also: what else is wrong with the file."""
        if self._columns or also:
            sentences = [*self._sentences(), *([also] if also else [])]
            raise CuratorError(" ".join(sentences))

    def _sentences(self) -> list[str]:
        """By column, the one whose first problem comes first before the others."""
        first = {
            name: min(r.order for r in known.values()) for name, known in self._columns.items()
        }
        names = sorted(first, key=first.__getitem__)
        more = len(names) - MOST_COLUMNS
        said = [self._sentence(name) for name in names[:MOST_COLUMNS]]
        return [*said, f"{more} more columns have such cells."] if more > 0 else said

    def _sentence(self, column: str) -> str:
        reasons = self._columns[column]
        told = "; ".join(
            (
                f"In {r.places[0]}, column {column}: {text}"
                if k == 0
                else f"in {r.places[0]}: {text}"
            )
            + _also(r)
            for k, (text, r) in enumerate(reasons.items())
        )
        untold = self._counts[column] - sum(r.count for r in reasons.values())
        return f"{told}; and {untold} more cells." if untold else f"{told}."


def _also(reason: _Reason) -> str:
    rest = reason.count - 1
    if not rest:
        return ""
    named = ", ".join(reason.places[1:])
    unnamed = rest - len(reason.places) + 1
    more = f" and {unnamed} more" if unnamed else ""
    return f" (so in {named}{more})" if named else f" (so in {rest} more)"
