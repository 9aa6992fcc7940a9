# SPDX-License-Identifier: Apache-2.0
"""Settings fail closed: nothing is open, off or shared by default, and no misspelt limit is no
limit.
"""

import pytest
from pydantic import ValidationError

from reticent_server.database import connect
from reticent_server.errors import CuratorError
from reticent_server.settings import Settings
from reticent_server.vault.adbc import parse_url


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"RETICENT_{name.upper()}", raising=False)


@pytest.mark.parametrize(
    "name", ["RETICENT_REQUEST_PER_MINUTE", "reticent_reply_grid", "RETICENT_"]
)
def test_a_variable_that_is_no_setting_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    Settings()
    monkeypatch.setenv(name, "5")
    with pytest.raises(ValidationError):
        Settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("requests_per_minute", "0"),
        ("reply_grid_ms", "-1"),
        ("max_body_bytes", "1e9"),
        ("release_threads", "0"),
        ("cors_origins", "*"),
        ("cors_origins", "https://a.example, https://b.example"),
        ("log_level", "everything"),
        ("oidc_issuer", "http://id.example"),
        ("oidc_issuer", "https://id.example/a b"),
        ("oidc_redirect_url", "https://desk.example/elsewhere"),
        ("oidc_redirect_url", "http://desk.example/console/oidc/callback"),
        ("oidc_algorithms", "HS256"),
        ("oidc_algorithms", "none"),
        ("oidc_algorithms", "RS256 none"),
        ("oidc_algorithms", ""),
    ],
)
def test_a_value_out_of_bounds_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"RETICENT_{name.upper()}", value)
    with pytest.raises(ValidationError):
        Settings()


def test_nothing_is_open_by_default() -> None:
    settings = Settings()
    assert (settings.cors_origins, settings.source_url, settings.dask_scheduler) == ("", "", "")
    assert settings.reply_grid_ms > 0
    assert settings.requests_per_minute <= 600
    secret = [name for name in Settings.model_fields if "secret" in name and name != "secrets_file"]
    assert not any(getattr(settings, name) for name in secret)
    assert settings.oidc_issuer == ""


def test_urls_which_may_hold_passwords_are_not_shown() -> None:
    shown = repr(
        Settings(
            database_url="postgresql://u:hidden@h/d",
            vault_url="sqlite:///hidden",
            secrets_json="hidden",
        )
    )
    assert "hidden" not in shown


def test_what_only_clients_read_stops_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETICENT_KEY", "rk_of_somebody")
    assert "rk_of_somebody" not in repr(Settings())


def test_an_empty_number_is_the_default_and_another_empty_setting_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Compose writes a variable that is not set as an empty one."""
    monkeypatch.setenv("RETICENT_THREADS", "")
    monkeypatch.setenv("RETICENT_PLAN_SECONDS", "")
    assert (Settings().threads, Settings().plan_seconds) == (2, 10)
    monkeypatch.setenv("RETICENT_LOG_LEVEL", "")
    with pytest.raises(ValidationError):
        Settings()


def test_postgresql_by_its_older_name() -> None:
    url = "postgres://u:p@127.0.0.1:1/d"
    engine = connect(url)
    try:
        assert (engine.dialect.name, engine.dialect.driver) == ("postgresql", "psycopg")
    finally:
        engine.dispose()
    assert parse_url(url).uri == "postgresql://u:p@127.0.0.1:1/d"
    for other in ("mysql://u@h/d", "postgresql+asyncpg://u@h/d", "reticent.db"):
        with pytest.raises(CuratorError, match="must be sqlite:///FILE or postgresql://"):
            connect(other)
