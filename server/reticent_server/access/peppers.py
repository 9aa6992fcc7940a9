# SPDX-License-Identifier: Apache-2.0
"""Peppers: the secrets under which keys are stored, each with an id. New keys are stored under the
newest; a key that is stored under an older one is stored again, under the newest, when it is used
next.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from secrets import token_bytes

from reticent_server.errors import Conflict, NotFound

PEPPER_BYTES = 32
"""256 bits, as many as the digest has (NIST SP 800-107, section 5.3.4)."""

FIRST = "1"
"""The id of the only pepper of an installation that has had one only."""

MOST_PEPPERS = 16
"""At once. One or two are usual: the newest, and the one before until nobody's key is left on
it."""

_ID = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Peppers:
    """by_id: at least one. newest: the id of the one in use; a larger id is staged, for checks
    only."""

    by_id: Mapping[str, bytes] = field(repr=False)
    newest: str

    def __post_init__(self) -> None:
        are_long = all(len(pepper) >= PEPPER_BYTES for pepper in self.by_id.values())
        if not (self.newest in self.by_id and are_long and len(self.by_id) <= MOST_PEPPERS):
            raise ValueError("not peppers")
        if not all(map(_ID.fullmatch, self.by_id)):
            raise ValueError("an id is a whole number")

    @property
    def in_use(self) -> bytes:
        """The newest."""
        return self.by_id[self.newest]

    @property
    def staged(self) -> str | None:
        """The id of one that is there for checks, and not in use yet."""
        last = str(max(map(int, self.by_id)))
        return last if int(last) > int(self.newest) else None

    def with_new(self) -> "Peppers":
        """One more, staged. Raises Conflict where one is staged already."""
        if self.staged is not None:
            raise Conflict(f"Pepper {self.staged} is staged already; rotate to it first.")
        if len(self.by_id) == MOST_PEPPERS:
            raise Conflict("There are too many peppers; retire old ones first.")
        made = str(int(self.newest) + 1)
        return Peppers({**self.by_id, made: token_bytes(PEPPER_BYTES)}, self.newest)

    def rotated(self) -> "Peppers":
        """The staged one in use, or one that is made for it."""
        known = self if self.staged is not None else self.with_new()
        return Peppers(known.by_id, known.staged or known.newest)

    def without(self, pepper_id: str) -> "Peppers":
        """All but one that is out of use. Raises NotFound; Conflict for the one in use."""
        if pepper_id not in self.by_id:
            raise NotFound("There is no pepper of that id.")
        if pepper_id == self.newest:
            raise Conflict("That pepper is in use; rotate to a new one first.")
        kept = {known: pepper for known, pepper in self.by_id.items() if known != pepper_id}
        return Peppers(kept, self.newest)


PepperSource = Callable[[], Peppers]
"""Gives the peppers as they are now."""


def only(pepper: bytes) -> PepperSource:
    """Peppers with one that does not change."""
    peppers = Peppers({FIRST: pepper}, FIRST)
    return lambda: peppers
