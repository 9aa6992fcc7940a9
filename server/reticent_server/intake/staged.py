# SPDX-License-Identifier: Apache-2.0
"""Files that curators bring to the console: what is proposed for them, the rows that their curator
sees, and how they are loaded. All of it is read in cells, of which there is one at a time for looks
and one for loads.
"""

from pathlib import Path

from reticent_server.catalog.repository import Catalog
from reticent_server.domain.clock import Clock
from reticent_server.domain.reading import UNSAID, Reading
from reticent_server.errors import PolicyRefused
from reticent_server.intake.apart import LoadApart, loaded_apart
from reticent_server.intake.cell import turn
from reticent_server.intake.loading import FileToLoad
from reticent_server.intake.looking import Look, looked
from reticent_server.intake.versions import LoadedVersion
from reticent_server.settings import Settings
from reticent_server.vault.draft import Proposal, ProposedColumn
from reticent_server.vault.staging import (
    MOST,
    UNREADABLE,
    Incoming,
    StagedFile,
    Staging,
    staging_folder,
)

__all__ = [
    "MOST",
    "UNREADABLE",
    "Incoming",
    "Proposal",
    "ProposedColumn",
    "StagedFile",
    "Staging",
    "load",
    "look",
    "staging",
    "sweep",
]

LOOK_PATIENCE_SECONDS = 15.0
"""While another look goes on: a look at the widest table takes 3 s."""

_OFF = (
    "This server takes no files. Use `reticent dataset load`, or set RETICENT_UPLOAD_BYTES and, "
    "where the vault is "
    "no file, RETICENT_STAGING_FOLDER."
)


def staging(settings: Settings, clock: Clock) -> Staging:
    """Raises PolicyRefused where no files are taken."""
    if not settings.upload_bytes:
        raise PolicyRefused(_OFF)
    return Staging(_folder(settings), clock)


def sweep(settings: Settings, clock: Clock) -> None:
    """Deletes files that were forgotten, too where none are taken any more."""
    folder = staging_folder(settings.staging_folder, settings.vault_url)
    if folder is not None:
        Staging(folder, clock).sweep()


def look(settings: Settings, staged: StagedFile, said: Reading = UNSAID) -> Proposal:
    """What is understood of the file. said: how it is read. Raises CuratorError; Unavailable while
    another look goes on.
    """
    path = min(staged.path.glob("*.parquet"), default=staged.path) if staged.stays else staged.path
    with turn(_folder(settings), "look", LOOK_PATIENCE_SECONDS):
        return looked(Look(path, None if staged.stays else settings.upload_bytes, said))


def load(
    settings: Settings, catalog: Catalog, staged: StagedFile, wanted: FileToLoad, *, by: str
) -> LoadedVersion:
    """Makes the file, or the files of a folder, the current version of a data set, or changes
    nothing. by: who does it. Raises CuratorError, SecondPerson, PolicyRefused, Conflict;
    Unavailable while another load goes on.
    """
    with turn(_folder(settings), "load", 0.0):
        stored = loaded_apart(LoadApart(settings, wanted, staged.stays, by))
    facts = catalog.facts_of(stored.version_id)
    return LoadedVersion(facts, stored.clipped, stored.left_out, stored.outside)


def _folder(settings: Settings) -> Path:
    folder = staging_folder(settings.staging_folder, settings.vault_url)
    if folder is None:
        raise PolicyRefused(_OFF)
    return folder
