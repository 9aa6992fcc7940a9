"""What a release would cost and bring, before anything is spent."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reticent._guarantee import Amount, Guarantee
from reticent._text import Text, number, paragraph


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """A plan: free, and made from public facts only.

    deadline_ms: when the reply becomes visible. forecast: expected standard errors and the like, by
    name, as JSON.
    """

    dataset: str
    version: int
    query: Mapping[str, Any]
    cost: Amount
    guarantee: Guarantee
    deadline_ms: float
    forecast: Mapping[str, Any]

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
        )

    def __repr__(self) -> str:
        kind = str(self.query["kind"]).replace("_", " ")
        fields = [f"{k}: {v}" for k, v in self.query.items() if k != "kind" and v is not None]
        return "\n".join(
            [
                f"Plan of a {kind} on {self.dataset} (version {self.version})",
                *fields,
                "",
                f"Cost: {self.cost}; the reply comes after {self.deadline_ms / 1000:.2g} s",
                *paragraph(f"Guarantee: {self.guarantee}"),
                *self._forecast(),
            ]
        )

    def _repr_html_(self) -> str:
        return Text(repr(self))._repr_html_()

    def _forecast(self) -> list[str]:
        lines: list[str] = []
        for name, value in self.forecast.items():
            if value not in ([], {}, None):
                lines += paragraph(f"Forecast {name.replace('_', ' ')}: {_words(value)}")
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
