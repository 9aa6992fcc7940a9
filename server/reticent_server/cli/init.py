# SPDX-License-Identifier: Apache-2.0
"""`reticent init`: makes or upgrades the databases, and writes the secrets once."""

from contextlib import closing
from typing import Annotated

import typer

from reticent_server.access.secret_places import SecretsFile, place_of
from reticent_server.access.secrets import create_secrets
from reticent_server.chain.anchors import Anchors
from reticent_server.cli.common import JsonFlag, command, show, user
from reticent_server.database import upgrade
from reticent_server.domain.roles import Act
from reticent_server.errors import CuratorError
from reticent_server.opening import open_catalog, open_ledger
from reticent_server.settings import Settings
from reticent_server.vault.adbc import create_vault, refuse_shared_file

_LOST = (
    "{} is not there, and the data sets of the database were named under the secrets that it held. "
    "Restore the file from its backup. If there is none, no key of anybody works any more, URLs of "
    "registered databases are gone, and no file and no person can be recognised. `reticent init "
    "--renew-secrets REASON` goes on with new secrets; each table that is then loaded into another "
    "population than these needs a reason of its own, as it may hold their rows."
)


@command(Act.INSTALL)
def init(
    renew_secrets: Annotated[
        str | None,
        typer.Option(
            metavar="REASON",
            help="Go on where the secrets of the database's data sets are lost: why, for the "
            "ledger.",
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Create or upgrade the databases, and write the secrets file once."""
    show(prepare(Settings(), renew_secrets), as_json=as_json)


def prepare(settings: Settings, renewed: str | None = None) -> list[dict[str, str]]:
    """Makes everything that serving needs; what is there already is kept. renewed: why secrets that
    were lost are replaced. Raises CuratorError, also where they were lost and there is no such
    reason.
    """
    refuse_shared_file(settings.database_url, settings.vault_url)
    upgrade(settings.database_url)
    create_vault(settings.vault_url)
    place = place_of(settings)
    secrets_are_new = isinstance(place, SecretsFile) and not place.path.exists()
    if secrets_are_new:
        _record_loss(settings, renewed)
        create_secrets(settings.secrets_file)
    place.load()
    return [*_parts(secrets_are_new), *_anchored(settings)]


def _record_loss(settings: Settings, reason: str | None) -> None:
    """Raises CuratorError where data sets are named under secrets that are gone, unless a reason is
    given, which is recorded."""
    with open_catalog(settings, older=True) as catalog:
        if not catalog.sources_by_population():
            return
        if not (reason or "").strip():
            raise CuratorError(_LOST.format(settings.secrets_file))
        catalog.renew_secrets(str(reason).strip(), by=user())


def _parts(secrets_are_new: bool) -> list[dict[str, str]]:
    return [
        {"part": "database", "state": "ready"},
        {"part": "vault", "state": "ready"},
        {"part": "secrets file", "state": "written" if secrets_are_new else "kept"},
    ]


def _anchored(settings: Settings) -> list[dict[str, str]]:
    """Writes the first anchor where there is a place for anchors, and none in it yet."""
    if settings.anchor_file is None:
        return []
    anchors = Anchors(settings.anchor_file)
    is_new = not settings.anchor_file.exists() or anchors.last() is None
    if is_new:
        with closing(open_ledger(settings)) as ledger:
            anchors.write(ledger.anchor())
    return [{"part": "anchors", "state": "written" if is_new else "kept"}]
