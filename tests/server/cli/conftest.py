# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    """A command sends the log to the standard error of its test, which is closed afterwards."""
    yield
    structlog.reset_defaults()
