# SPDX-License-Identifier: Apache-2.0
"""`reticent certify`: a signed document about this installation, that anybody can check."""

import json
import sqlite3
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from reticent_server.access.secret_places import SecretsFile, SecretsText
from reticent_server.access.secrets import create_secrets, secrets_text
from reticent_server.certificate.signing import (
    CERTIFICATE,
    PROTOCOL,
    fingerprint,
    opened,
    opened_detached,
    sign,
)
from reticent_server.cli.certify import certify
from reticent_server.cli.init import prepare
from reticent_server.domain.roles import STAFF
from reticent_server.errors import CuratorError
from reticent_server.opening import open_access
from reticent_server.settings import Settings

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command in a directory with an installation, of the kinds that take no time."""
    monkeypatch.chdir(tmp_path)
    prepare(Settings())
    app = typer.Typer()
    app.command()(certify)
    return lambda *given: CliRunner().invoke(app, given)


def made(run: Run, *more: str) -> dict[str, Any]:
    result = run("--kind", "count", "--out", "c", "--json", *more)
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


@pytest.mark.slow
def test_the_document_says_what_is_installed_and_what_was_replayed(run: Run) -> None:
    document = made(run)
    assert document["software"]["libraries"]["opendp"] == "0.16.0"
    assert len(document["software"]["source_sha256"]) == 64
    (kind,) = document["replay"]["kinds"]
    assert kind["kind"] == "count"
    assert kind["holds"]
    assert document["replay"]["holds"]
    assert not document["replay"]["every_kind"]
    assert document["ledger"]["problems"] == []
    assert len(document["ledger"]["head"]) == 64
    page = Path("c.md").read_text()
    for each in document["questions"]:
        assert each["asked"] in page
        assert each["answer"] in page
    assert "| count | 27 |" in page
    assert "The examples of some kinds" in page


@pytest.mark.slow
def test_every_page_that_an_answer_names_is_there(run: Run) -> None:
    docs = Path(__file__).parents[3] / "docs"
    assert all((docs / each["page"]).is_file() for each in made(run)["questions"])


@pytest.mark.slow
def test_a_certificate_is_checked_by_whoever_has_the_fingerprint(run: Run) -> None:
    made(run)
    _, known = opened(Path("c.jws").read_text(), CERTIFICATE)
    assert known == fingerprint(SecretsFile(Settings().secrets_file))
    assert known in run("--check", "c.jws").stdout
    assert "the key that you named" in run("--check", "c.jws", "--key", known).stdout
    other = run("--check", "c.jws", "--key", "A" * 43)
    assert other.exit_code == 1
    assert known in other.stderr


@pytest.mark.slow
def test_a_changed_certificate_is_refused(run: Run) -> None:
    made(run)
    header, payload, signature = Path("c.jws").read_text().strip().split(".")
    document = json.loads(urlsafe_b64decode(payload + "=="))
    document["replay"]["kinds"] = []
    forged = urlsafe_b64encode(json.dumps(document).encode()).decode().rstrip("=")
    unsigned = urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    for changed in (f"{header}.{forged}.{signature}", f"{unsigned}.{payload}.", "", "a.b.c"):
        Path("c.jws").write_text(changed)
        result = run("--check", "c.jws")
        assert result.exit_code == 1, changed
        assert "or it was changed" in result.stderr


def signed(path: Path, payload: bytes) -> str:
    """By the key of the installation in the directory: anybody may have one."""
    path.write_text(sign(SecretsFile(Settings().secrets_file), payload, CERTIFICATE))
    return str(path)


@pytest.mark.slow
def test_what_was_signed_must_be_a_certificate_and_says_nothing_to_the_terminal(run: Run) -> None:
    document, hidden = made(run), "x\x1b[2K\rnobody"
    ledger = document["ledger"] | {"problems": [hidden]}
    (kind,) = document["replay"]["kinds"]
    replay = document["replay"] | {"kinds": [kind | {"holds": False, "beyond": [hidden]}]}
    others = (
        document | {"made_at": hidden},
        document | {"ledger": ledger},
        document | {"replay": replay},
        document | {"format": "reticent-certificate-0"},
        {k: v for k, v in document.items() if k != "replay"},
        document | {"protocol": 1},
        [document],
    )
    twice = b'{"made_at": "2020-01-01",' + json.dumps(document).encode()[1:]
    for payload in (b"text", twice, b"[" * 50_000, *(json.dumps(each).encode() for each in others)):
        result = run("--check", signed(Path("o.jws"), payload))
        assert result.exit_code == 1
        assert "no certificate" in result.stderr
        assert result.stdout == ""
    assert run("--check", signed(Path("o.jws"), json.dumps(document).encode())).exit_code == 0
    Path("o.jws").write_text(
        sign(SecretsFile(Settings().secrets_file), json.dumps(document).encode(), PROTOCOL)
    )
    result = run("--check", "o.jws")
    assert (result.exit_code, "something else than a certificate" in result.stderr) == (1, True)


@pytest.mark.slow
def test_a_ledger_that_was_edited_is_no_success(run: Run) -> None:
    with open_access(Settings()) as access:
        access.add_curator("olga", STAFF, by="t")
    with closing(sqlite3.connect("reticent.db")) as database:
        database.execute("UPDATE ledger_head SET hash = ?", ("0" * 64,))
        database.commit()
    result = run("--kind", "count", "--out", "c")
    assert result.exit_code == 1
    assert result.stderr.strip()


def test_the_key_is_made_once_and_kept(tmp_path: Path) -> None:
    place = SecretsFile(tmp_path / "secrets.json")
    create_secrets(place.path)
    first = fingerprint(place)
    assert first == fingerprint(place) == opened(sign(place, b"text", CERTIFICATE), CERTIFICATE)[1]
    assert opened(sign(place, b"text", CERTIFICATE), CERTIFICATE)[0] == b"text"
    assert "signing" not in repr(place.load())


@pytest.mark.parametrize("kinds", [(CERTIFICATE, PROTOCOL), (PROTOCOL, CERTIFICATE)])
def test_what_is_signed_as_one_thing_is_no_other(tmp_path: Path, kinds: tuple[str, str]) -> None:
    """One key signs both, and a protocol's text is somebody else's."""
    place = SecretsFile(tmp_path / "secrets.json")
    create_secrets(place.path)
    header, payload, signature = sign(place, b"text", kinds[0]).split(".")
    with pytest.raises(CuratorError, match="something else"):
        opened(f"{header}.{payload}.{signature}", kinds[1])
    with pytest.raises(CuratorError, match="something else"):
        opened_detached(f"{header}..{signature}", b"text", kinds[1])
    assert opened_detached(f"{header}..{signature}", b"text", kinds[0]) == fingerprint(place)


def test_secrets_that_are_not_written_here_must_have_a_key(tmp_path: Path) -> None:
    known = create_secrets(tmp_path / "secrets.json")
    with pytest.raises(CuratorError, match='add "signing"'):
        fingerprint(SecretsText(secrets_text(known)))


def test_a_document_may_be_longer_than_tokens_are(tmp_path: Path) -> None:
    place = SecretsFile(tmp_path / "secrets.json")
    create_secrets(place.path)
    long = b"x" * 1_000_000
    assert opened(sign(place, long, CERTIFICATE), CERTIFICATE)[0] == long
