# SPDX-License-Identifier: Apache-2.0
"""Libraries that read the formats of others: optional, and a sentence where one is not
installed.
"""

from importlib import import_module
from types import ModuleType

from reticent_server.errors import CuratorError


def library(module: str, extra: str, what: str) -> ModuleType:
    """The module. what: for which files, in words. Raises CuratorError that says what to
    install.
    """
    try:
        return import_module(module)
    except ImportError:
        raise CuratorError(
            f"{what} need a library that is not installed here: "
            f'`pip install "reticent-server[{extra}]"`, or write the table as CSV.'
        ) from None
