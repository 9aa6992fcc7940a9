# SPDX-License-Identifier: Apache-2.0
"""Puts the migrations into what is built: into a wheel as part of the package, so that `reticent
init` finds them."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Migrations(BuildHookInterface[Any]):
    """Adds the database migrations, which stand beside the package, to what is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Of a clone they stand beside this folder; of a source distribution, in it."""
        if version == "editable":  # the package is used where it stands, and so are they
            return
        here = Path(self.root)
        inside = here / "migrations"
        folder = inside if inside.is_dir() else here.parent / "migrations"
        target = "migrations" if self.target_name == "sdist" else "reticent_server/_migrations"
        build_data["force_include"][str(folder)] = target
