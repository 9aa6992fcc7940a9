# SPDX-License-Identifier: Apache-2.0
"""What a machine's pace was, kept in a file beside the vault from one start of a server to the
next.

It holds times of examples on rows that are made up (pipeline.calibration), so nothing about any
table. A file that another version, machine or number of threads has left, or that cannot be read,
counts as none: the machine is measured anyway.
"""

import json
import os
import platform
from dataclasses import dataclass
from importlib.metadata import version
from math import inf
from secrets import token_hex
from typing import Any

from reticent_server.pipeline.pace import Shares
from reticent_server.settings import Settings
from reticent_server.vault.adbc import parse_url


@dataclass(frozen=True, slots=True)
class KeptPace:
    """speed, shares: as in Pace.measured. check_ms: what the examples of the short check took when
    these were measured."""

    speed: float
    shares: Shares
    check_ms: float

    def slower(self, times: float) -> "KeptPace":
        """The pace of a machine that takes so many times as long."""
        shares = {sort: {n: times * s for n, s in at.items()} for sort, at in self.shares.items()}
        return KeptPace(times * self.speed, shares, times * self.check_ms)


class PaceFile:
    """The file of a server with these settings; none where the vault is no file."""

    def __init__(self, settings: Settings) -> None:
        file = parse_url(settings.vault_url).file
        self.path = None if file is None else file.with_name(f"{file.name}.pace")
        self._made_by = [
            version("reticent-server"),
            platform.platform(),
            platform.node(),
            os.cpu_count(),
            settings.threads,
            settings.block_rows,
        ]

    def read(self) -> KeptPace | None:
        """What was kept; None where nothing is that holds for this server."""
        try:
            document = json.loads(self.path.read_text()) if self.path else {}
            return _pace(document) if document["made_by"] == self._made_by else None
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def write(self, kept: KeptPace) -> None:
        """Replaces the file at once; does nothing where it cannot be written."""
        if self.path is None:
            return
        document = {
            "made_by": self._made_by,
            "speed": kept.speed,
            "check_ms": kept.check_ms,
            "shares": kept.shares,
        }
        new = self.path.with_name(f"{self.path.name}.{token_hex(8)}")
        try:
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                json.dump(document, file)
            new.replace(self.path)
        except OSError:
            new.unlink(missing_ok=True)


def _pace(document: dict[str, Any]) -> KeptPace:
    """ValueError, TypeError or AttributeError unless all are positive numbers."""
    shares = {
        str(sort): {int(n): _positive(share) for n, share in at.items()}
        for sort, at in document["shares"].items()
    }
    return KeptPace(_positive(document["speed"]), shares, _positive(document["check_ms"]))


def _positive(value: Any) -> float:
    if not 0 < float(value) < inf:
        raise ValueError("not a time")
    return float(value)
