# SPDX-License-Identifier: Apache-2.0
from pathlib import Path
from stat import S_IMODE

import pytest

from reticent_server.access.secrets import create_secrets, load_secrets
from reticent_server.errors import CuratorError


def test_secrets_are_written_for_the_owner_only_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    made = create_secrets(path)
    assert load_secrets(path) == made
    assert len(made.peppers.in_use) == 32
    assert S_IMODE(path.stat().st_mode) == 0o600
    assert made.peppers.in_use.hex() not in repr(made)
    assert create_secrets(tmp_path / "other.json") != made


def test_secrets_are_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    made = create_secrets(path)
    with pytest.raises(CuratorError, match="never overwritten"):
        create_secrets(path)
    assert load_secrets(path) == made
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(CuratorError):
        create_secrets(link)


def test_an_absent_file_fails_closed(tmp_path: Path) -> None:
    with pytest.raises(CuratorError, match="reticent init"):
        load_secrets(tmp_path / "secrets.json")
    with pytest.raises(CuratorError):
        load_secrets(tmp_path)
    with pytest.raises(CuratorError):
        create_secrets(tmp_path / "absent" / "secrets.json")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o777, 0o601])
def test_a_file_that_others_may_open_fails_closed(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "secrets.json"
    create_secrets(path)
    path.chmod(mode)
    with pytest.raises(CuratorError, match="chmod"):
        load_secrets(path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        '{"pepper": 1}',
        '{"pepper": ""}',
        '{"pepper": "00"}',
        '{"peppers": {}, "newest": "1"}',
        '{"peppers": {"1": "00"}, "newest": "1"}',
        '{"peppers": {"1": "%s"}, "newest": "2"}' % ("00" * 32),
        '{"peppers": {"x": "%s"}, "newest": "x"}' % ("00" * 32),
        "\xff\xfe",
        "x",
    ],
)
def test_a_malformed_file_fails_closed(tmp_path: Path, text: str) -> None:
    path = tmp_path / "secrets.json"
    path.touch(0o600)
    path.write_text(text, encoding="latin-1")
    with pytest.raises(CuratorError, match="not a secrets file"):
        load_secrets(path)


def test_a_file_from_when_there_was_one_pepper_is_read(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    path.touch(0o600)
    path.write_text('{"pepper": "%s", "sources": {"a": "sqlite:///x"}}' % ("ab" * 32))
    found = load_secrets(path)
    assert (found.peppers.newest, found.peppers.in_use) == ("1", bytes.fromhex("ab" * 32))
    assert found.sources == {"a": "sqlite:///x"}
