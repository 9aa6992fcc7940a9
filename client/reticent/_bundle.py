# SPDX-License-Identifier: Apache-2.0
"""A bundle: questions that were settled on beforehand, planned together, asked once, and kept in a
folder.

A file (YAML or JSON), or a mapping in Python, names the questions with how wide each interval may
be:

    title: What a bathroom adds to the price
    dataset: houses
    queries:
      average: {kind: mean, column: price, ci_ratio: 1.25}
      model:   {kind: linear_regression, formula: price ~ bathrooms, ci_ratio: {bathrooms: 1.5}}
      homes:   {kind: count, half_width: 30}
      middle:  {kind: median, column: price, epsilon: 0.2}

The digest of the questions stands in every idempotency key: running a bundle again charges nothing
again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import log
from os import PathLike
from pathlib import Path
from typing import Any

from reticent import _optional
from reticent._archive import Archive, digest_of, file_name
from reticent._dataset import Dataset
from reticent._errors import ConfirmationNeeded, InvalidPrivacy, InvalidQuery, NotSpent
from reticent._json_file import json_of
from reticent._plan import Plan
from reticent._spending import at_prompt
from reticent._text import Text, number, plain, text_table

_SPENT = ("epsilon", "delta", "ci_ratio", "half_width")
_ROUNDS, _CLOSE = 6, 0.97
"""Of the search for the common factor, which ends where 97 % of what may be spent is; usually after
two.
"""
_WIDEST = 64.0
"""Times the width that was asked for beyond which a bundle does not fit its budget."""


@dataclass(frozen=True, slots=True)
class BundleQuery:
    """One question: its name, the arguments of its method, and what it may cost or how wide it may
    be.
    """

    name: str
    kind: str
    fields: Mapping[str, Any]
    spending: Mapping[str, Any]

    @classmethod
    def from_json(cls, name: str, content: Any) -> "BundleQuery":
        """From an entry of a bundle file, checked: `content` has a kind and epsilon, ci_ratio or
        half_width. Raises InvalidQuery without a kind, InvalidPrivacy where nothing says what may
        be spent."""
        if not isinstance(content, Mapping) or not isinstance(content.get("kind"), str):
            raise InvalidQuery(f"{name}: a question of a bundle is a mapping with its kind.")
        fields = {k: v for k, v in content.items() if k not in {"kind", *_SPENT}}
        spending = {k: content[k] for k in _SPENT if content.get(k) is not None}
        if not {"epsilon", "ci_ratio", "half_width"} & set(spending):
            raise InvalidPrivacy(f"{name}: give epsilon, ci_ratio or half_width.")
        return cls(name, content["kind"], fields, spending)

    def widened(self, factor: float) -> dict[str, Any]:
        """What it may cost where every width may be so many times as far from none as was asked
        for.
        """
        found = dict(self.spending)
        if "ci_ratio" in found:
            found["ci_ratio"] = _each(found["ci_ratio"], lambda ratio: 1 + (ratio - 1) * factor)
        if "half_width" in found:
            found["half_width"] = _each(found["half_width"], lambda width: width * factor)
        return found


@dataclass(frozen=True, slots=True, repr=False)
class BundlePlan:
    """What a bundle would cost and bring; free. plans: by name, in order. factor: how much wider
    than asked for every interval is, so that the total fits the epsilon that was given; 1: as
    asked.

    >>> bundle.plan(ds).epsilon
    """

    plans: Mapping[str, Plan]
    factor: float = 1.0

    @property
    def epsilon(self) -> float:
        """The total, as accounts under the rule basic add it up."""
        return sum(float(plan.cost.epsilon or 0.0) for plan in self.plans.values())

    @property
    def rho(self) -> float:
        """The total, as accounts under the rule zcdp add it up."""
        return sum(float(plan.cost.rho or 0.0) for plan in self.plans.values())

    @property
    def covered(self) -> bool:
        """Whether all accounts cover all of it now."""
        return all(self._covers(name) for name in next(iter(self.plans.values())).budget)

    def _covers(self, account: str) -> bool:
        costs = [plan.budget.get(account) for plan in self.plans.values()]
        known = [cost for cost in costs if cost is not None]
        if len(known) < len(costs):
            return False
        parts = ("rho", "rho_delta") if known[0].rule != "basic" else ("epsilon", "delta")
        return all(
            sum(getattr(each.cost, part) or 0.0 for each in known)
            <= (getattr(known[0].remaining, part) or 0.0)
            for part in parts
        )

    def summary(self) -> Text:
        """A line for each question: its epsilon and its forecast widths."""
        rows = [
            (name, str(plan.query["kind"]), plain(plan.cost.epsilon), _widths(plan))
            for name, plan in self.plans.items()
        ]
        stretched = (
            [] if self.factor == 1.0 else [f"Widths are {self.factor:.3g} times those asked for."]
        )
        verdict = (
            "Your budgets cover it."
            if self.covered
            else "Your budgets do not cover it, or none is set."
        )
        total = f"Together: ε = {plain(round(self.epsilon, 6))}, ρ = {plain(self.rho)}. {verdict}"
        table = text_table(("question", "kind", "epsilon", "forecast"), rows)
        return Text("\n".join([*table, "", *stretched, total]))

    def __repr__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


@dataclass(frozen=True, slots=True)
class Bundle:
    """Questions that are planned, asked and kept together.

    >>> average = {"kind": "mean", "column": "grade", "ci_ratio": 1.5}
    >>> bundle = reticent.bundle({"queries": {"average": average}})
    >>> bundle.plan(ds)
    >>> bundle.run(ds, "results", confirm=True)["average"].summary()
    """

    queries: tuple[BundleQuery, ...]
    title: str = ""
    dataset: str | None = None

    @property
    def digest(self) -> str:
        """SHA-256 of the questions: what was registered, in hexadecimal."""
        return digest_of(self.document)

    @property
    def document(self) -> dict[str, Any]:
        """The bundle as JSON."""
        queries = {q.name: {"kind": q.kind, **q.fields, **q.spending} for q in self.queries}
        return {"title": self.title, "dataset": self.dataset, "queries": queries}

    def plan(self, dataset: Dataset, epsilon: float | None = None) -> BundlePlan:
        """Every question at the least epsilon that is forecast to bring its widths; free.

        epsilon: the most that all may cost together; where that is less, all widths are stretched
        by one factor, so that the forecast is as near to what was asked for as it pays. Raises
        InvalidPrivacy where no factor up to 64 does, and what plans raise.

        >>> bundle.plan(ds, epsilon=3.0).factor
        """
        if self.dataset is not None and dataset.name not in {
            self.dataset,
            _twin_name(self.dataset),
        }:
            raise InvalidQuery(f"The bundle is about {self.dataset}, not {dataset.name}.")
        asked = self._planned(dataset, 1.0)
        if epsilon is None or asked.epsilon <= epsilon:
            return asked
        return self._stretched(dataset, asked, epsilon)

    def _stretched(self, dataset: Dataset, narrow: BundlePlan, epsilon: float) -> BundlePlan:
        """The narrowest plan within 3 % of what it may cost: the factor is bracketed, and then
        found by interpolation of logarithms.
        """
        wide = self._planned(dataset, 2.0)
        while wide.epsilon > epsilon:
            if wide.factor >= _WIDEST:
                raise InvalidPrivacy(
                    f"The bundle takes epsilon = {plain(round(wide.epsilon, 6))} even where its "
                    "intervals may be "
                    f"{wide.factor:g} times as wide as asked for; {plain(epsilon)} does not pay "
                    "for it. Ask for less, "
                    "or spend more."
                )
            narrow, wide = wide, self._planned(dataset, 2 * wide.factor)
        for _ in range(_ROUNDS):
            if wide.epsilon >= _CLOSE * epsilon:
                break
            tried = self._planned(dataset, _between(narrow, wide, epsilon))
            narrow, wide = (tried, wide) if tried.epsilon > epsilon else (narrow, tried)
        return wide

    def run(
        self,
        dataset: Dataset,
        folder: str | PathLike[str],
        *,
        epsilon: float | None = None,
        confirm: bool | None = None,
    ) -> Archive:
        """Asks every question once, at its planned epsilon, and keeps plan and releases in a
        folder.

        epsilon: the most that all may cost together, which nobody is asked about; confirm: as of
        every method. A run that was interrupted goes on where it stopped, and one that is done is
        read back: nothing is charged twice. Raises ConfirmationNeeded, NotSpent where budgets do
        not cover all of it, and what questions raise.

        >>> bundle.run(ds, "results", epsilon=5.0).rebuild()
        """
        archive = Archive.opened(Path(folder), self.document, self.digest)
        amounts = archive.amounts
        if amounts is None:
            planned = self.plan(dataset, epsilon)
            self._confirm(planned, dataset, epsilon, confirm)
            amounts = {name: float(p.cost.epsilon or 0.0) for name, p in planned.plans.items()}
            archive.write_amounts(amounts, planned.factor)
        for query in self.queries:
            if query.name not in archive.names:
                archive.add(query.name, self._asked(dataset, query, amounts[query.name]))
        return archive

    def _planned(self, dataset: Dataset, factor: float) -> BundlePlan:
        plans = {
            q.name: dataset.plan(q.kind, **q.fields, **q.widened(factor)) for q in self.queries
        }
        return BundlePlan(plans, factor)

    def _confirm(
        self, planned: BundlePlan, dataset: Dataset, epsilon: float | None, confirm: bool | None
    ) -> None:
        whole = next(iter(planned.plans.values()))
        if whole.budget and not planned.covered:
            raise NotSpent(f"Nothing was spent.\n{planned.summary()}", plan=planned)
        if confirm is True or (confirm is None and epsilon is not None):
            return
        ask: Callable[[str], bool] | None = at_prompt()
        if ask is None or not ask(f"{planned.summary()}\nSpend it on {dataset.name}? [y/N] "):
            raise ConfirmationNeeded(
                "Nothing was spent. Give confirm=True, or epsilon= as the most to "
                f"spend.\n{planned.summary()}",
                plan=planned,
            )

    def _asked(self, dataset: Dataset, query: BundleQuery, epsilon: float) -> Any:
        key = f"bundle-{self.digest[:24]}-{sha256(query.name.encode()).hexdigest()[:16]}"
        return dataset.ask(
            query.kind,
            **query.fields,
            epsilon=epsilon,
            delta=query.spending.get("delta"),
            idempotency_key=key,
        )


def bundle(source: str | PathLike[str] | Mapping[str, Any]) -> Bundle:
    """A bundle of a file (YAML, which needs PyYAML, or JSON), or of a mapping. Raises InvalidQuery,
    InvalidPrivacy with what to change, OSError where the file cannot be read.

    >>> reticent.bundle({"queries": {"homes": {"kind": "count", "half_width": 60}}}).digest
    """
    content = source if isinstance(source, Mapping) else _content(Path(source))
    queries = content.get("queries") if isinstance(content, Mapping) else None
    if not isinstance(queries, Mapping) or not queries:
        raise InvalidQuery("A bundle has `queries`: questions by name.")
    unknown = set(content) - {"title", "dataset", "queries"}
    if unknown:
        raise InvalidQuery(f"A bundle has title, dataset and queries, and no {min(unknown)}.")
    if len({file_name(str(name)) for name in queries}) < len(queries):
        raise InvalidQuery("Two names of questions would share a file: use letters, digits and -_.")
    return Bundle(
        tuple(BundleQuery.from_json(str(name), query) for name, query in queries.items()),
        str(content.get("title") or ""),
        content.get("dataset"),
    )


def _content(path: Path) -> Any:
    if path.suffix == ".json":
        return json_of(path, "a bundle")
    yaml = _optional.yaml()
    try:
        return yaml.safe_load(path.read_text("utf-8"))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidQuery(f"{path} cannot be read as a bundle: {error}.") from None


def _between(narrow: BundlePlan, wide: BundlePlan, epsilon: float) -> float:
    """The factor at which a total that is a power of it between two plans is a little below
    epsilon.
    """
    power = log(narrow.epsilon / wide.epsilon) / log(wide.factor / narrow.factor)
    aim = wide.factor * (wide.epsilon / (epsilon * (1 + _CLOSE) / 2)) ** (1 / power)
    return float(min(max(aim, narrow.factor), wide.factor))


def _each(widths: Any, change: Callable[[float], float]) -> Any:
    if isinstance(widths, Mapping):
        return {name: change(width) for name, width in widths.items()}
    return change(widths)


def _twin_name(name: str) -> str:
    return f"{name} (twin, not for inference)"


def _widths(plan: Plan) -> str:
    """The widest of the intervals, in words."""
    ratios = [r for r in plan.ci_ratio.values() if r is not None]
    if ratios:
        return f"{max(ratios):.2f} times the width without privacy"
    widths = [w for w in plan.half_width.values() if w is not None]
    return f"±{number(max(widths))}" if widths else "–"
