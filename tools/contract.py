# SPDX-License-Identifier: Apache-2.0
"""Compares the HTTP interface, the schema of a release and the client with those of the last
version.

    python tools/contract.py            names what has changed in ways that break callers
    python tools/contract.py --store    stores the present ones, after a version was tagged

docs/reference/stability.md has the policy; a test compares, too.
"""

import inspect
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import reticent
from compatibility import http_breaks, release_breaks
from docs_reference import openapi

Json = Mapping[str, Any]

ROOT = Path(__file__).resolve().parents[1]
STORED = ROOT / "tests/fixtures/contract"


def present() -> dict[str, Json]:
    """What this tree offers, by the name of the file that it is stored in."""
    return {
        "openapi.json": openapi(),
        "release.schema.json": reticent.release_schema(),
        "client.json": client(),
    }


def stored() -> dict[str, Json]:
    """The same of the last version."""
    return {path.name: json.loads(path.read_text("utf-8")) for path in STORED.glob("*.json")}


def client() -> dict[str, dict[str, bool]]:
    """Every public function, class, attribute and method of the client: whether each parameter must
    be given. Users make no object of the client's own but `Client`, so of other classes only
    members count.
    """
    found: dict[str, dict[str, bool]] = {}
    for name in reticent.__all__:
        value = getattr(reticent, name)
        made = inspect.isfunction(value) or value is reticent.Client
        found[name] = _parameters(value) if made else {}
        if inspect.isclass(value):
            found |= {f"{name}.{member}": given for member, given in _members(value).items()}
    return found


def _members(kind: type) -> dict[str, dict[str, bool]]:
    """Public members that this project defines, inherited ones included."""
    own = [each for each in kind.__mro__ if each.__module__.startswith("reticent")]
    members = {name: value for each in reversed(own) for name, value in vars(each).items()}
    return {
        name: _parameters(value) if inspect.isfunction(value) else {}
        for name, value in members.items()
        if not name.startswith("_") and name != "from_json"
    }


def _parameters(function: Any) -> dict[str, bool]:
    """By name, without `self`, `*args` and `**kwargs`."""
    given = inspect.signature(function).parameters.values()
    named = [p for p in given if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return {p.name: p.default is p.empty for p in named if p.name != "self"}


def client_breaks(old: Json, new: Json) -> list[str]:
    """Names and parameters that are gone, and parameters that must be given now."""
    found = []
    for name, parameters in old.items():
        if name not in new:
            found.append(f"`{name}` is gone")
            continue
        found += [f"`{name}`: `{p}` is gone" for p in parameters if p not in new[name]]
        needed = [p for p, required in new[name].items() if required and not parameters.get(p)]
        found += [f"`{name}`: `{p}` must be given" for p in needed]
    return found


def breaks(old: Mapping[str, Json], new: Mapping[str, Json]) -> list[str]:
    """Every breaking change, as a sentence."""
    http = http_breaks(old["openapi.json"], new["openapi.json"])
    release = release_breaks(old["release.schema.json"], new["release.schema.json"])
    calls = client_breaks(old["client.json"], new["client.json"])
    return [
        *(f"HTTP: {text}" for text in http),
        *(f"release: {text}" for text in release),
        *(f"client: {text}" for text in calls),
    ]


def may_break(old: str, new: str) -> bool:
    """Whether the policy lets version `new` break callers of `old`: a new major version, before 1.0
    a new minor.
    """
    before, now = (tuple(int(part) for part in text.split(".")[:2]) for text in (old, new))
    return now > before if before[0] == 0 else now[0] > before[0]


def store() -> None:
    """Writes the present ones."""
    STORED.mkdir(parents=True, exist_ok=True)
    for name, content in present().items():
        text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False)
        (STORED / name).write_text(text + "\n", "utf-8")
    store_replies()


def store_replies() -> None:
    """Writes one request and its reply of every kind, as this client sends and reads them."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.client.stored_replies import store as store_exchanges  # noqa: PLC0415
    from support.installations.small import build  # noqa: PLC0415 - the tests' own

    with TemporaryDirectory() as place:
        store_exchanges(build(Path(place)))


if __name__ == "__main__":
    if sys.argv[1:] == ["--store"]:
        store()
        sys.exit()
    changes = breaks(stored(), present())
    print("\n".join(changes) or "Nothing that breaks callers of the last version.")
    sys.exit(1 if changes else 0)
