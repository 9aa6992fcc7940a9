# SPDX-License-Identifier: Apache-2.0
"""Packages that the base install leaves out."""

import warnings
from importlib import import_module
from typing import Any

from reticent._errors import MissingDependency


def pandas() -> Any:
    """The module, imported when it is first needed. Raises ImportError, naming the extra to
    install."""
    return _need("pandas", "pip install 'reticent[pandas]'")


def pyplot() -> Any:
    """matplotlib.pyplot, imported at the first plot. Raises ImportError, naming the extra to
    install."""
    return _need("matplotlib.pyplot", "pip install 'reticent[plot]'")


def server_twin() -> Any:
    """The server's module that answers about a synthetic table in this process."""
    return _need("reticent_server.twin", "pip install 'reticent[server]'")


def yaml() -> Any:
    """The module, imported when it is first needed. Raises ImportError, naming the extra to
    install."""
    return _need("yaml", "pip install 'reticent[yaml]'")


def mbi() -> Any:
    """mbi, imported when records over several tables are first made; its advice about jax's
    settings, which these tables do not need, is not shown. Raises ImportError, naming the extra to
    install."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="mbi")
        return _need("mbi", "pip install 'reticent[synthetic]'")


def docx() -> Any:
    """python-docx, imported at the first document. Raises ImportError, naming the extra to
    install."""
    return _need("docx", "pip install 'reticent[word]'")


def _need(module: str, command: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingDependency(f"This needs {package}: {command}.") from error
