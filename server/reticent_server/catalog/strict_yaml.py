# SPDX-License-Identifier: Apache-2.0
"""YAML for files that decide privacy: safe types only, no duplicate keys, no aliases, one size."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from reticent_server.errors import CuratorError

MAX_BYTES = 1 << 20


class _StrictLoader(yaml.SafeLoader):
    """The safe loader, which refuses what it would otherwise resolve silently."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """YAML's node. Raises ConstructorError at an alias."""
        if self.check_event(yaml.AliasEvent):
            mark = self.get_mark()
            raise _refusal(mark, "aliases (*name) are not allowed")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        """A mapping. Raises ConstructorError where a key stands twice, or is not a plain name."""
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise _refusal(key_node.start_mark, "a key must be a plain name")
            if key in seen:
                raise _refusal(key_node.start_mark, f"the key {key} appears twice")
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


def _number(loader: _StrictLoader, node: Any) -> Any:
    """A number; YAML 1.1 also reads 1:30:00 as one, of base 60. Raises ConstructorError."""
    if ":" in node.value:
        raise _refusal(
            node.start_mark,
            f"{node.value} is read as a number of base 60: write seconds, or quotes",
        )
    reads = {"int": loader.construct_yaml_int, "float": loader.construct_yaml_float}
    return reads[node.tag.rpartition(":")[2]](node)


for _kind in ("int", "float"):
    _StrictLoader.add_constructor(f"tag:yaml.org,2002:{_kind}", _number)


def _refusal(mark: Any, problem: str) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, mark)


def load_yaml(path: Path) -> object:
    """The document of a YAML file. Raises CuratorError naming the line."""
    text = _text(path)
    try:
        # _StrictLoader is a SafeLoader: it makes no objects but plain values.
        return yaml.load(text, Loader=_StrictLoader)  # noqa: S506
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise CuratorError(f"{path.name}{line}: {error.problem}.") from None
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError):
        raise CuratorError(f"{path.name} is not a YAML file that can be read.") from None


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CuratorError(f"{path} cannot be opened: {error.strerror}.") from None
    if len(data) > MAX_BYTES:
        raise CuratorError(f"{path.name} is larger than a schema file may be (1 MB).")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CuratorError(f"{path.name} is not UTF-8 text.") from None
