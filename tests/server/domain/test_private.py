# SPDX-License-Identifier: Apache-2.0
"""Private[T] cannot be printed, pickled, compared or branched on by accident."""

import copy
import logging
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

from reticent_server.domain.private import Private

SERVER = Path(__file__).parents[3] / "server" / "reticent_server"


@pytest.mark.parametrize("show", [repr, str, "{}".format, "%s".__mod__, "{:>9}".format])
def test_has_a_constant_text(show: Any) -> None:
    assert show(Private(12345)) == show(Private("other")) == "<private>"


@pytest.mark.parametrize(
    "use",
    [
        pickle.dumps, copy.copy, copy.deepcopy, bool, len, iter, hash, float, int,
        lambda p: p == 1, lambda p: p != 1, lambda p: p < 1, lambda p: p >= 0, vars,
    ],
)  # fmt: skip
def test_refuses_every_other_use(use: Any) -> None:
    with pytest.raises(TypeError) as caught:
        use(Private([12345]))
    assert "12345" not in str(caught.value)


def test_a_log_line_has_the_constant_text(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("x").warning("value %s", Private(12345))
    assert "12345" not in caplog.text


def test_is_unwrapped_by_engine_and_mechanisms_only() -> None:
    users = {
        path.relative_to(SERVER).parts[0]
        for path in SERVER.rglob("*.py")
        if re.search(r"\.unwrap\(", path.read_text())
    }
    assert users <= {"engine", "mechanisms"}
