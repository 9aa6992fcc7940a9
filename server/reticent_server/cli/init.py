# SPDX-License-Identifier: Apache-2.0
"""`reticent init`: makes or upgrades the databases, and writes the secrets once."""

from contextlib import closing

from reticent_server.access.secret_places import SecretsFile, place_of
from reticent_server.access.secrets import create_secrets
from reticent_server.chain.anchors import Anchors
from reticent_server.cli.common import JsonFlag, command, show
from reticent_server.database import upgrade
from reticent_server.domain.roles import Act
from reticent_server.opening import open_ledger
from reticent_server.settings import Settings
from reticent_server.vault.adbc import create_vault, refuse_shared_file


@command(Act.INSTALL)
def init(as_json: JsonFlag = False) -> None:
    """Create or upgrade the databases, and write the secrets file once."""
    show(prepare(Settings()), as_json=as_json)


def prepare(settings: Settings) -> list[dict[str, str]]:
    """Makes everything that serving needs; what is there already is kept. Raises CuratorError."""
    refuse_shared_file(settings.database_url, settings.vault_url)
    upgrade(settings.database_url)
    create_vault(settings.vault_url)
    place = place_of(settings)
    secrets_are_new = isinstance(place, SecretsFile) and not place.path.exists()
    if secrets_are_new:
        create_secrets(settings.secrets_file)
    place.load()
    return [*_parts(secrets_are_new), *_anchored(settings)]


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
