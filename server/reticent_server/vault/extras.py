# SPDX-License-Identifier: Apache-2.0
"""Libraries that read the formats of others: optional, and a sentence where one is not
installed.
"""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from reticent_server.errors import LibraryMissing

FOREIGN = {
    "Excel": "python_calamine",
    "SAS": "pyreadstat",
    "Stata": "pyreadstat",
    "SPSS": "pyreadstat",
    "DuckDB": "duckdb",
}
"""What reads the formats of others."""


def readable() -> dict[str, bool]:
    """Of each format of others whether its library is installed here."""
    return {name: find_spec(module) is not None for name, module in FOREIGN.items()}


def library(module: str, extra: str, what: str) -> ModuleType:
    """The module. what: for which files, in words. Raises LibraryMissing, which says what to
    install.
    """
    try:
        return import_module(module)
    except ImportError:
        raise LibraryMissing(
            f"{what} need a library that is not installed here: "
            f'`pip install "reticent-server[{extra}]"`, or write the table as CSV.'
        ) from None
