# SPDX-License-Identifier: Apache-2.0
"""Addresses that somebody may give this server: none leads it to a service of the machine or of its
network that was not meant.

Only whoever installs the server names hosts, in its settings; a curator with a shell names
databases and buckets, and one at the console only a folder by its name. (Redirections and endpoints
that a provider names: tests/server/access/test_fetching.py, test_tokens.py.)
"""

from pathlib import Path

import pytest
from pydantic import ValidationError

from reticent_server.errors import CuratorError
from reticent_server.intake.registering import folders
from reticent_server.settings import Settings
from reticent_server.vault.parquet_folder import folder_at
from reticent_server.vault.sql_source import source_url

METADATA = "169.254.169.254"
"""Where clouds give a machine its credentials, over plain HTTP."""

ELSEWHERE = (
    f"http://{METADATA}",
    f"http://{METADATA}/latest/meta-data/",
    "http://10.0.0.1:9000",
    "http://[fd00::1]:9000",
    "http://0.0.0.0:9000",
    "http://2130706433:9000",
    "http://127.0.0.1.elsewhere.example",
    "http://localhost.elsewhere.example:80",
    f"http://127.0.0.1@{METADATA}",
    f"https://localhost@{METADATA}",
    "https://name:word@id.example",
    "https://id.example#http://127.0.0.1",
    "https://id.example\\@127.0.0.1",
    "https://id.example\n.elsewhere.example",
    "file:///etc/passwd",
    "ftp://id.example",
    "gopher://127.0.0.1:25/",
    "unix:///run/docker.sock",
    "//id.example",
    "id.example",
)
NEAR = ("https://id.example", "http://127.0.0.1:9000", "http://localhost", "http://[::1]:9000")


@pytest.mark.parametrize("setting", ["oidc_issuer", "s3_endpoint"])
def test_a_setting_names_a_host_by_https_or_this_machine(setting: str) -> None:
    for address in NEAR:
        assert getattr(Settings(**{setting: address}), setting) == address
    for address in ELSEWHERE:
        with pytest.raises(ValidationError):
            Settings(**{setting: address})


@pytest.mark.parametrize("site", ["console", "workbench"])
def test_signing_in_comes_back_to_the_server_only(site: str) -> None:
    setting = {"console": "oidc_redirect_url", "workbench": "oidc_workbench_redirect_url"}[site]
    for address in NEAR:
        Settings(**{setting: f"{address}/{site}/oidc/callback"})
    for address in ELSEWHERE:
        with pytest.raises(ValidationError):
            Settings(**{setting: f"{address}/{site}/oidc/callback"})


def test_a_source_is_a_database_and_nothing_else() -> None:
    """A file of SQLite, read-only, or PostgreSQL: its driver speaks nothing else."""
    assert source_url("postgresql://db.example/x").file is None
    assert source_url("sqlite:////x.db").uri.endswith("?mode=ro")
    for address in (*ELSEWHERE, "sqlite://", "sqlite:///:memory:", "mysql://x", "adbc://x"):
        with pytest.raises(CuratorError) as refused:
            source_url(address)
        assert refused.value.detail == "--url must be sqlite:///FILE or postgresql://…."


def test_parquet_is_in_a_directory_or_a_bucket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What looks like another address is a directory that is not there; a bucket is named without
    host, credentials or options.
    """
    monkeypatch.chdir(tmp_path)
    for address in ELSEWHERE:
        with pytest.raises(CuratorError, match="is not a directory"):
            folder_at(address).names()
    for address in (
        f"s3://{METADATA}:80/x",
        "s3://key:secret@bucket/x",
        "s3://bucket/x?endpoint_override=http://127.0.0.1",
        "s3://bucket/../x",
        "s3://bucket/x#y",
        "s3://",
    ):
        with pytest.raises(CuratorError) as refused:
            folder_at(address)
        assert "secret" not in refused.value.detail


def test_a_curator_chooses_a_folder_by_its_name(tmp_path: Path) -> None:
    """Of those that are there: a link to another place is none of them."""
    (tmp_path / "sources" / "towns").mkdir(parents=True)
    (tmp_path / "sources" / "towns" / "a.parquet").touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "b.parquet").touch()
    (tmp_path / "sources" / "link").symlink_to(tmp_path / "elsewhere")
    assert [each.name for each in folders(tmp_path / "sources")] == ["towns"]
    (tmp_path / "sources" / "towns" / "c.parquet").symlink_to(tmp_path / "elsewhere" / "b.parquet")
    assert folders(tmp_path / "sources") == []
