# SPDX-License-Identifier: Apache-2.0
"""Schema files that are drafted from a file of data."""

from pathlib import Path

from reticent_server.vault.draft import draft_text, propose


def draft_schema(path: Path) -> str:
    """The text that a curator would complete."""
    return draft_text(propose(path), path.name)
