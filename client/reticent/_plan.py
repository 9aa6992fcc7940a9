# SPDX-License-Identifier: Apache-2.0
"""What a release would cost and bring, before anything is spent."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from reticent._errors import NotFound
from reticent._guarantee import Amount, Coverage, Guarantee
from reticent._text import Text, number, paragraph, plain
from reticent._vector import Vector

ACCOUNTS = {"analyst": "Your budget", "dataset": "Budget of all analysts"}

_SHOWN = {"terms", "privacy_to_sampling", "epsilon_for", "notes"}


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """A plan: free, and made from public facts only.

    deadline_ms: when the reply becomes visible. forecast: expected standard errors and the like, by
    name, as JSON. budget: by account ("analyst": yours; "dataset": that of all analysts), what the plan costs
    there and what is left; None where no budget is set.
    """

    dataset: str
    version: int
    query: Mapping[str, Any]
    cost: Amount
    guarantee: Guarantee
    deadline_ms: float
    forecast: Mapping[str, Any]
    budget: Mapping[str, Coverage | None] = field(default_factory=dict)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Plan":
        return cls(
            dataset=str(content["dataset"]),
            version=int(content["version"]),
            query=dict(content["query"]),
            cost=Amount.from_json(content["cost"]),
            guarantee=Guarantee.from_json(content["guarantee"]),
            deadline_ms=float(content["deadline_ms"]),
            forecast=dict(content["forecast"]),
            budget={
                name: Coverage.from_json(found[name]) if found.get(name) else None
                for found in (content.get("budget") or {},)
                for name in ACCOUNTS
                if name in found
            },
        )

    @property
    def covered(self) -> bool:
        """Whether a release would be charged now; else it would be refused, and nothing charged."""
        return bool(self.budget) and all(a is not None and a.covered for a in self.budget.values())

    @property
    def privacy_to_sampling(self) -> Vector:
        """(p,) expected privacy over sampling standard error of a regression's coefficients.

        NaN where no profile says how rare a dummy is. At 1 the interval is 1.41 times as wide as
        sampling alone would make it. Raises NotFound where the plan forecasts none.
        """
        if "privacy_to_sampling" not in self.forecast:
            raise NotFound("Only plans of a linear regression forecast its coefficients.")
        return Vector(self.forecast["privacy_to_sampling"], self.forecast["terms"])

    @property
    def epsilon_for(self) -> dict[float, float]:
        """The epsilon at which the largest of `privacy_to_sampling` is forecast to fall to each target.

        NaN where no epsilon reaches it; empty for other kinds than a linear regression.
        """
        found = self.forecast.get("epsilon_for", ())
        return {
            float(f["privacy_to_sampling"]): float("nan") if f["epsilon"] is None else f["epsilon"]
            for f in found
        }

    def __repr__(self) -> str:
        kind = str(self.query["kind"]).replace("_", " ")
        fields = [f"{k}: {v}" for k, v in self.query.items() if k != "kind" and v is not None]
        return "\n".join(
            [
                f"Plan of a {kind} on {self.dataset} (version {self.version})",
                *fields,
                "",
                f"Cost: {self.cost}; the reply comes after {self.deadline_ms / 1000:.2g} s",
                *self._coverage(),
                *paragraph(f"Guarantee: {self.guarantee}"),
                *self._forecast(),
            ]
        )

    def _repr_html_(self) -> str:
        return Text(repr(self))._repr_html_()

    def _coverage(self) -> list[str]:
        return [
            f"{ACCOUNTS[name]}: {account or 'no budget is set'}"
            for name, account in self.budget.items()
        ]

    def _forecast(self) -> list[str]:
        lines = self._coefficients()
        shown = _SHOWN if lines else set[str]()
        for name, value in self.forecast.items():
            if value not in ([], {}, None) and name not in shown:
                lines += paragraph(f"Forecast {name.replace('_', ' ')}: {_words(value)}")
        return lines

    def _coefficients(self) -> list[str]:
        """The forecast of a regression, in words."""
        if "privacy_to_sampling" not in self.forecast:
            return []
        ratios = ", ".join(f"{t} {number(r)}" for t, r in self.privacy_to_sampling.items())
        lines = paragraph(f"Forecast privacy over sampling standard error: {ratios}")
        for target, epsilon in self.epsilon_for.items():
            reached = f"epsilon = {plain(epsilon)}" if isfinite(epsilon) else "no epsilon"
            lines += paragraph(
                f"Forecast: {reached} brings the largest of these to {plain(target)}"
            )
        for note in self.forecast.get("notes", ()):
            lines += paragraph(str(note), "- ")
        return lines


def _words(value: Any) -> str:
    match value:
        case bool() | int():
            return str(value)
        case float():
            return number(value)
        case Mapping():
            return ", ".join(f"{str(k).replace('_', ' ')} {_words(v)}" for k, v in value.items())
        case list():
            return " ".join(map(_words, value))
        case _:
            return str(value)
