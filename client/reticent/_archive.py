# SPDX-License-Identifier: Apache-2.0
"""What a bundle's run leaves behind: a folder from which every table and figure is made again
without the server.

bundle.json            the questions, and their digest
plan.json              what each was planned to cost
releases/<name>.json   the answers as the server sent them
digests.json           SHA-256 of each answer's file, as it was kept
tables/, figures/      made of them by `rebuild`
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from reticent._errors import InvalidQuery, MissingDependency, NotEstimable, NotFound
from reticent._json_file import json_of
from reticent._reading import load
from reticent._release import NoReply, Release

_FIGURE_DPI = 150
"""Points an inch: sharp in print at half a page's width."""


@dataclass(frozen=True, slots=True, repr=False)
class Archive:
    """A folder with a bundle's releases.

    >>> bundle = reticent.bundle({"queries": {"homes": {"kind": "count", "half_width": 60}}})
    >>> archive = bundle.run(ds, "registered", confirm=True)
    >>> archive["homes"].summary()
    """

    folder: Path

    @classmethod
    def read(cls, folder: str | Path) -> "Archive":
        """The archive in a folder. Raises InvalidQuery where there is none."""
        found = cls(Path(folder))
        if not (found.folder / "bundle.json").is_file():
            raise InvalidQuery(f"{folder} holds no archive of a bundle: bundle.json is not there.")
        return found

    @classmethod
    def opened(cls, folder: Path, document: Mapping[str, Any], digest: str) -> "Archive":
        """The archive of a bundle, new or to be gone on with. Raises InvalidQuery where the folder
        has another bundle's.
        """
        known = folder / "bundle.json"
        if known.is_file():
            if _document(folder).get("digest") != digest:
                raise InvalidQuery(f"{folder} holds another bundle's archive; name another folder.")
            return cls(folder)
        if folder.exists() and any(folder.iterdir()):
            raise InvalidQuery(f"{folder} is not empty; name another folder.")
        (folder / "releases").mkdir(parents=True, exist_ok=True)
        _write(known, {**document, "digest": digest})
        return cls(folder)

    @property
    def names(self) -> list[str]:
        """Of the questions that were answered, in their order."""
        queries = _document(self.folder)["queries"]
        return [name for name in queries if self._place(name).is_file()]

    @property
    def amounts(self) -> dict[str, float] | None:
        """The planned epsilon of each question; None before a plan was settled on."""
        place = self.folder / "plan.json"
        if not place.is_file():
            return None
        found: dict[str, float] = json_of(place, "the plan of an archive")["epsilon"]
        return found

    def write_amounts(self, amounts: Mapping[str, float], factor: float) -> None:
        """Settles on a plan."""
        _write(self.folder / "plan.json", {"epsilon": dict(amounts), "factor": factor})

    def add(self, name: str, release: Release) -> None:
        """Keeps an answer."""
        release.save(self._place(name))
        kept = self._digests() | {name: _sha256(self._place(name))}
        _write(self.folder / "digests.json", kept)

    def check(self) -> None:
        """Raises InvalidQuery where the questions are not those of their digest, or an answer was
        edited since it was kept, or answers another question. Whether a server has answered so is
        told by its page `/verify`.
        """
        document = _document(self.folder)
        asked = {name: part for name, part in document.items() if name != "digest"}
        if digest_of(asked) != document.get("digest"):
            raise InvalidQuery(
                f"{self.folder}: the questions in bundle.json are not those of its digest; they "
                "were edited after they were registered."
            )
        digests = self._digests()
        for name in self.names:
            if _sha256(self._place(name)) != digests.get(name):
                raise InvalidQuery(
                    f"{self._place(name)} is not as it was kept: digests.json has another digest "
                    "of it, or none. Delete it and run the bundle again, which is free."
                )
            if self[name].query.get("kind") != asked["queries"][name]["kind"]:
                raise InvalidQuery(f"{self._place(name)} answers another question than {name}.")

    def _digests(self) -> dict[str, str]:
        place = self.folder / "digests.json"
        return dict(json_of(place, "the digests of an archive")) if place.is_file() else {}

    def __getitem__(self, name: str) -> Any:
        """The release of a question. Raises KeyError."""
        if name not in self.names:
            raise KeyError(f"{name}: the archive has {', '.join(self.names) or 'no answers'}")
        return load(self._place(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def rebuild(self) -> list[Path]:
        """Makes every table and figure again from the releases alone, and gives their paths.

        Texts of all; CSV files with pandas, PNG files with matplotlib, where they are installed and
        the answer has one. Raises InvalidQuery as `check` does.

        >>> reticent.Archive.read("registered").rebuild()
        """
        self.check()
        made: list[Path] = []
        for name in self.names:
            release = self[name]
            made.append(self._table(name, release))
            made += [] if isinstance(release, NoReply) else self._more(name, release)
        return made

    def _table(self, name: str, release: Release) -> Path:
        place = _parent(self.folder / "tables") / f"{file_name(name)}.txt"
        place.write_text(f"{release.summary()}\n", "utf-8")
        return place

    def _more(self, name: str, release: Any) -> list[Path]:
        made = []
        try:
            frame = release.to_frame()
            made.append(self.folder / "tables" / f"{file_name(name)}.csv")
            frame.to_csv(made[-1])
        except MissingDependency:
            pass
        if hasattr(release, "plot"):
            try:
                drawn = release.plot()
            except (MissingDependency, NotEstimable, NotFound):
                return made
            made.append(_parent(self.folder / "figures") / f"{file_name(name)}.png")
            _figure(drawn).savefig(made[-1], dpi=_FIGURE_DPI)
        return made

    def _place(self, name: str) -> Path:
        return self.folder / "releases" / f"{file_name(name)}.json"

    def __repr__(self) -> str:
        return f"<Archive in {self.folder}: {', '.join(self.names) or 'no answers yet'}>"


def _figure(drawn: Any) -> Any:
    """The figure of what a plot gives: a Figure, Axes, or several of these."""
    while not hasattr(drawn, "figure"):
        drawn = next(iter(getattr(drawn, "flat", drawn)))
    return drawn.figure


def digest_of(document: Mapping[str, Any]) -> str:
    """SHA-256 of a bundle's document, in hexadecimal."""
    return sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _sha256(place: Path) -> str:
    return sha256(place.read_bytes()).hexdigest()


def _document(folder: Path) -> dict[str, Any]:
    """Raises InvalidQuery for what holds no questions."""
    place = folder / "bundle.json"
    found = json_of(place, "an archive of a bundle")
    if not isinstance(found, Mapping) or not isinstance(found.get("queries"), Mapping):
        raise InvalidQuery(f"{place} holds no questions of a bundle.")
    return dict(found)


def file_name(name: str) -> str:
    """A file's name of a question's: letters, digits and -_. are kept."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in name)


def _parent(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def _write(place: Path, content: Mapping[str, Any]) -> None:
    place.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")
