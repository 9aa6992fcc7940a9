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

USELESS = 5.0
"""Times the width without privacy, at which an interval says what 1/25 of the records would."""
ACCOUNTS = {"analyst": "Your budget", "dataset": "Budget of all analysts"}

_SHOWN = {"terms", "privacy_to_sampling", "epsilon_for", "notes"}


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """A plan: free, and made from public facts only.

    deadline_ms: when the reply becomes visible. forecast: expected standard errors and the like, by
    name, as JSON. budget: by account ("analyst": yours; "dataset": that of all analysts), what the
    plan costs there and what is left; None where no budget is set. precision: the forecast
    intervals as JSON, None where the plan forecasts none; see ci_ratio and half_width. answers:
    which question the reply will answer, its first line. other_target: of a model that has a robust
    and a textbook's target, the one that was not asked for as JSON, with its question and precision
    at the same cost; see targets.
    """

    dataset: str
    version: int
    query: Mapping[str, Any]
    cost: Amount
    guarantee: Guarantee
    deadline_ms: float
    forecast: Mapping[str, Any]
    budget: Mapping[str, Coverage | None] = field(default_factory=dict)
    precision: Mapping[str, Any] | None = None
    answers: str = ""
    other_target: Mapping[str, Any] | None = None

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Plan":
        """From the reply of `POST /v1/plans`."""
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
            precision=content.get("precision"),
            answers=str(content.get("answers") or ""),
            other_target=content.get("other_target"),
        )

    @property
    def covered(self) -> bool:
        """Whether a release would be charged now; else it would be refused, and nothing charged."""
        return bool(self.budget) and all(a is not None and a.covered for a in self.budget.values())

    @property
    def ci_ratio(self) -> dict[str, float | None]:
        """Forecast width of each number's interval over that without privacy, by name; None where
        there is no such interval, or no interval is expected at all. Empty where the plan forecasts
        none.

        >>> ds.plan("mean", "price", epsilon=0.5).ci_ratio["mean"]
        """
        return self._by_name("ci_ratios")

    @property
    def targets(self) -> dict[str, float | None]:
        """Forecast width of the widest interval over that without privacy, by what would be
        estimated: of the question that was asked, then of its other target. None where some
        interval is not expected at all. Empty where the model has one target only.

        >>> ds.plan("linear_regression", "price ~ grade", epsilon=1.0).targets
        """
        if self.other_target is None:
            return {}
        both = {self.answers: self.precision}
        both[str(self.other_target["answers"])] = self.other_target["precision"]
        return {name: _widest(each) for name, each in both.items()}

    @property
    def half_width(self) -> dict[str, float | None]:
        """Half of each number's forecast 95 % interval in the units of the data, by name; None
        where it is not known.

        >>> ds.plan("count", epsilon=0.5).half_width["count"]
        """
        return self._by_name("half_widths")

    @property
    def useless(self) -> list[str]:
        """Names of the numbers whose forecast interval says nothing: none is expected, or one
        USELESS times as wide as without privacy. "reply" where a reply is not likely.
        """
        widths = self.half_width
        found = [
            name
            for name, ratio in self.ci_ratio.items()
            if (ratio is None and widths[name] is None) or (ratio is not None and ratio > USELESS)
        ]
        return found + (["reply"] if self.forecast.get("reply_likely") is False else [])

    def _by_name(self, figure: str) -> dict[str, float | None]:
        if self.precision is None:
            return {}
        return dict(zip(self.precision["names"], self.precision[figure], strict=True))

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
        """The epsilon at which the largest of `privacy_to_sampling` is forecast to fall to each
        target.

        NaN where no epsilon reaches it; empty for other kinds than a linear regression.
        """
        found = self.forecast.get("epsilon_for", ())
        return {
            float(f["privacy_to_sampling"]): float("nan") if f["epsilon"] is None else f["epsilon"]
            for f in found
        }

    def __repr__(self) -> str:
        kind = str(self.query["kind"]).replace("_", " ")
        article = "an" if kind[0] in "aeiou" else "a"
        fields = [f"{k}: {v}" for k, v in self.query.items() if k != "kind" and v is not None]
        return "\n".join(
            [
                f"Plan of {article} {kind} on {self.dataset} (version {self.version})",
                *fields,
                "",
                f"Cost: {self.cost}; the reply comes after {self.deadline_ms / 1000:.2g} s",
                *self.coverage,
                *paragraph(f"Guarantee: {self.guarantee}"),
                *self._forecast(),
            ]
        )

    def _repr_html_(self) -> str:
        return Text(repr(self))._repr_html_()

    @property
    def coverage(self) -> list[str]:
        """A line for each account: what is left there, and whether it covers the cost."""
        return [
            f"{ACCOUNTS[name]}: {account or 'no budget is set'}"
            for name, account in self.budget.items()
        ]

    def _forecast(self) -> list[str]:
        lines = self._intervals() + self._coefficients()
        shown = _SHOWN if "privacy_to_sampling" in self.forecast else set[str]()
        for name, value in self.forecast.items():
            if value not in ([], {}, None) and name not in shown:
                lines += paragraph(f"Forecast {name.replace('_', ' ')}: {_words(value)}")
        return lines

    def _intervals(self) -> list[str]:
        """The forecast widths, in words."""
        lines = paragraph(f"Estimated: {self.answers}") if self.answers else []
        if self.targets:
            lines += paragraph(f"Forecast of both targets: {'; '.join(self._told_targets())}")
        ratios = [(n, r) for n, r in self.ci_ratio.items() if r is not None]
        widths = [(n, w) for n, w in self.half_width.items() if w is not None]
        if ratios:
            worst, most = max(ratios, key=lambda each: each[1])
            lines += paragraph(
                f"Widest interval: {worst}, {most:.2f} times as wide as without privacy"
            )
            told = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios)
            lines += paragraph(f"Forecast width of the intervals, without privacy 1: {told}")
        if widths:
            told = ", ".join(f"{name} ±{number(width)}" for name, width in widths)
            lines += paragraph(f"Forecast 95 % intervals: {told}")
        return lines

    def _told_targets(self) -> list[str]:
        """As "least squares: intervals 1.6 times as wide as without privacy"; the widest one of
        each.
        """
        told = []
        for answers, ratio in self.targets.items():
            name = answers.partition(";")[0]
            width = (
                "no interval expected for some terms"
                if ratio is None
                else f"intervals up to {ratio:.2g} times as wide as without privacy"
            )
            told.append(f"{name[:1].lower()}{name[1:]}: {width}")
        return told

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


def _widest(precision: Mapping[str, Any] | None) -> float | None:
    ratios = [] if precision is None else list(precision["ci_ratios"])
    return None if not ratios or None in ratios else float(max(ratios))


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
