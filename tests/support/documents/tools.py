# SPDX-License-Identifier: Apache-2.0
"""The programs of the folder `tools`, as modules."""

import sys
from importlib import import_module
from types import ModuleType

import pytest

from support.documents.code_blocks import ROOT


def tool(name: str) -> ModuleType:
    """tools/{name}.py or the package tools/{name}: they are beside each other when they run as
    programs.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])
        return import_module(name)
