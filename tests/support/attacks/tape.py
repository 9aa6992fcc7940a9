# SPDX-License-Identifier: Apache-2.0
"""What mechanisms release, recorded on one table and released again on another."""

from collections.abc import Callable
from typing import Any

import pytest

from reticent_server.domain.private import Private
from reticent_server.mechanisms import column_registry, registry


class Tape:
    """Records until it is rewound; then gives the same values in the same order, and fails where
    another part is asked.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._released: list[Any] = []
        self._at: int | None = None
        for module in (registry, column_registry):
            monkeypatch.setattr(module, "release", self._taped(module.release))

    def rewind(self) -> None:
        self._at = 0

    @property
    def left(self) -> int:
        """How many of the recorded values have not been released again."""
        return len(self._released) - (self._at or 0)

    def _taped(self, release: Callable[..., Any]) -> Callable[..., Any]:
        def taped(part: Any, total: Any, *more: Any) -> Any:
            assert isinstance(total, Private)
            if self._at is None:
                self._released.append((part, release(part, total, *more)))
                return self._released[-1][1]
            expected, value = self._released[self._at]
            assert part == expected  # what is asked next follows from what was released, too
            self._at += 1
            return value

        return taped
