# SPDX-License-Identifier: Apache-2.0
"""Files that curators bring to the console: what is proposed for them, the rows that their curator sees."""

from dataclasses import dataclass, field

from reticent_server.domain.clock import Clock
from reticent_server.errors import PolicyRefused
from reticent_server.settings import Settings
from reticent_server.vault.draft import ProposedColumn, propose
from reticent_server.vault.preview import Preview, preview
from reticent_server.vault.staging import Incoming, StagedFile, Staging, staging_folder

__all__ = [
    "Incoming",
    "Opened",
    "ProposedColumn",
    "StagedFile",
    "Staging",
    "look",
    "staging",
    "sweep",
]

_OFF = (
    "This server takes no files. Use `reticent dataset load`, or set RETICENT_UPLOAD_BYTES and, where the vault is "
    "no file, RETICENT_STAGING_FOLDER."
)


@dataclass(frozen=True, slots=True)
class Opened:
    """A file that waits, as its curator sees it."""

    columns: tuple[ProposedColumn, ...]
    preview: Preview = field(repr=False)


def staging(settings: Settings, clock: Clock) -> Staging:
    """Raises PolicyRefused where no files are taken."""
    folder = staging_folder(settings.staging_folder, settings.vault_url)
    if folder is None or not settings.upload_bytes:
        raise PolicyRefused(_OFF)
    return Staging(folder, clock)


def sweep(settings: Settings, clock: Clock) -> None:
    """Deletes files that were forgotten, too where none are taken any more."""
    folder = staging_folder(settings.staging_folder, settings.vault_url)
    if folder is not None:
        Staging(folder, clock).sweep()


def look(staged: StagedFile) -> Opened:
    """What the file's columns may be, and its first rows. Raises CuratorError."""
    path = min(staged.path.glob("*.parquet"), default=staged.path) if staged.stays else staged.path
    return Opened(propose(path), preview(path))
