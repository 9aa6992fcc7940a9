# SPDX-License-Identifier: Apache-2.0
from support.installations.console import desk, history

__all__ = ["desk", "history"]
