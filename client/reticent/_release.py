# SPDX-License-Identifier: Apache-2.0
"""A stored answer: what every kind of release has in common, and No Reply."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

from reticent import _optional
from reticent._guarantee import Amount, Guarantee
from reticent._text import Text, paragraph

_REASONS = {
    "no_reply": (
        "No Reply: the mechanism's safety test did not pass, so nothing can be released about "
        "these "
        "data at this privacy level. That is an answer, with a guarantee, and it has been "
        "charged. A "
        "larger epsilon, more records or a less demanding query make a reply likelier."
    ),
    "failed": (
        "Failed: the computation could not be finished. Its cost has been charged, since the data "
        "may have been read; ask the curator about a credit."
    ),
    "pending": "Pending: the release is not ready yet. Look again with client.release(id).",
    "cancelled": "Cancelled before the data were read; its cost was given back.",
}


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Release:
    """An answer of the server, already paid for. release: the JSON document as it was received."""

    release: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The server's name of the release, by which `Client.release` finds it again, free of
        charge."""
        return str(self.release["id"])

    @property
    def dataset(self) -> str:
        """The name of the data set that was asked about."""
        return str(self.release["dataset"])

    @property
    def version(self) -> int:
        """The number of the data set's version; a later version of the data has another one."""
        return int(self.release["version"])

    @property
    def status(self) -> str:
        """ "reply", "no_reply", "failed", "pending" or "cancelled"."""
        return str(self.release["status"])

    @property
    def query(self) -> Mapping[str, Any]:
        """The query as the server understood it."""
        content: Mapping[str, Any] = self.release["query"]
        return content

    @property
    def result(self) -> Mapping[str, Any]:
        """The released values as JSON; empty where there was no reply."""
        return self.release.get("result") or {}

    @property
    def answers(self) -> str:
        """Which question a model's numbers answer, as "Least squares" or "Robust (Huber–Mallows);
        least squares may differ": the first line of its summary. Empty where the kind's name says
        it, and in releases of earlier versions.
        """
        return str(self.release.get("answers") or "")

    @property
    def charged(self) -> Amount:
        """What was paid."""
        return Amount.from_json(self.release["charged"])

    @property
    def guarantee(self) -> Guarantee:
        """What is proved about the release: tier, unit of privacy, epsilon, delta and
        assumptions."""
        return Guarantee.from_json(self.release["guarantee"])

    @property
    def created_at(self) -> str:
        """When the charge was made (ISO 8601)."""
        return str(self.release["created_at"])

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the release as JSON, for reticent.load."""
        Path(path).write_text(json.dumps(self.release, indent=1, ensure_ascii=False), "utf-8")

    def summary(self) -> Text:
        """The answer, its guarantee and its charge in words."""
        lines = self._headline() + [f"{name}: {value}" for name, value in self.result.items()]
        return Text("\n".join([*lines, "", *self._footer()]))

    def to_frame(self) -> Any:
        """A pandas.DataFrame; of a kind that has none of its own, one row of its single values."""
        single = {k: v for k, v in self.result.items() if not isinstance(v, list | dict)}
        return _optional.pandas().DataFrame([single], index=[str(self.query["kind"])])

    def __repr__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def check(self) -> None:
        """Raises KeyError, TypeError or ValueError where the document lacks what is read later."""
        _ = (self.id, self.dataset, self.version, self.status, self.created_at)
        _ = (self.query["kind"], self.charged, self.guarantee, self.result.items())

    def _headline(self) -> list[str]:
        title = str(self.query["kind"]).replace("_", " ").capitalize()
        first = [f"{self.answers}."] if self.answers else []
        lines = [*first, f"{title} on {self.dataset} (version {self.version})"]
        fields = [(k, v) for k, v in self.query.items() if k in {"column", "formula", "where"}]
        return lines + [f"{name.capitalize()}: {value}" for name, value in fields]

    def _warned(self) -> list[str]:
        """What the reply says of its numbers, as lines."""
        said = self.result.get("warnings") or ()
        return [line for text in said for line in paragraph(str(text))]

    def _footer(self) -> list[str]:
        return [
            *paragraph(f"Guarantee: {self.guarantee}"),
            *paragraph(f"Charged: {self.charged}. Release {self.id}, {self.created_at}."),
        ]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class NoReply(Release):
    """A release without values: No Reply, failed, pending or cancelled; `summary()` says which."""

    def summary(self) -> Text:
        reason = _REASONS.get(self.status, f"The release is {self.status}.")
        lines = [*self._headline(), "", *paragraph(reason), "", *self._footer()]
        return Text("\n".join(lines))

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"there is no {name}: the status of this release is {self.status!r}; see summary()"
            if not name.startswith("_")
            else name
        )
