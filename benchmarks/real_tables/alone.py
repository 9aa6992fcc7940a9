# SPDX-License-Identifier: Apache-2.0
"""Which rules decline an interval, which of them alone, and whether the interval would have held.

Rules that a fit passes change nothing of its numbers, so that one run says what each of them does.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting import identifiability, newton, report, trust, whole_newton
from reticent_server.fitting.identifiability import Directions
from reticent_server.fitting.standard_fit import StandardFit
from reticent_server.fitting.trust import BoolArray, thresholds

_WHOLE = {
    "linear_step": "the bend of a mean score (BEND, LIKELIHOOD_BEND)",
    "believed": "the curvature (LEAST_FACTOR, DOUBT)",
    "arrived": "the last score (SURPRISE)",
    "information": "the information (INFORMATION_NOISE)",
    "persons": "persons (LEAST_PERSONS, MOST_CLIPPED, JACOBIAN_NOISE)",
    "spread": "the spread of columns (SPREAD_NOISE)",
}
"""Rules of a whole fit, by their names in fitting.trust."""
Ruled = dict[str, BoolArray]
"""(q,) of each rule: which coefficients it declines."""


@dataclass(slots=True)
class Alone:
    """What was seen. declined, alone: of each rule, how many coefficients; held, widths: of those
    that it alone declines, whether the interval would hold the target, and its width over the
    textbook's. given: of those that none declines, the same.
    """

    coefficients: int = 0
    declined: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    alone: dict[str, list[tuple[bool, float]]] = field(default_factory=lambda: defaultdict(list))
    given: list[tuple[bool, float]] = field(default_factory=list)

    def add(self, ruled: Ruled, held: BoolArray, widths: FloatArray) -> None:
        """One reply."""
        each = np.array(list(ruled.values()))
        self.coefficients += each.shape[1]
        for name, row in ruled.items():
            self.declined[name] += int(row.sum())
            only = row & (each.sum(axis=0) == 1)
            self.alone[name] += zip(held[only].tolist(), widths[only].tolist(), strict=True)
        free = ~each.any(axis=0)
        self.given += zip(held[free].tolist(), widths[free].tolist(), strict=True)

    def table(self) -> str:
        """One line a rule, as Markdown."""
        rows = ["| rule | declines | alone | would cover | width |", "|---|---|---|---|---|"]
        for name in sorted(self.declined, key=lambda k: -len(self.alone[k])):
            share = self.declined[name] / self.coefficients
            rows.append(f"| {name} | {share:.3f} | {self._line(self.alone[name])} |")
        rows.append(f"| none: given | | {self._line(self.given)} |")
        return "\n".join(rows) + "\n"

    def _line(self, found: list[tuple[bool, float]]) -> str:
        share = len(found) / max(self.coefficients, 1)
        if not found:
            return "0 | |"
        held, widths = np.array(found, dtype=float).T
        return f"{share:.4f} | {held.mean():.2f} | {np.median(widths):.1f}"


@contextmanager
def rules_told() -> Iterator[Ruled]:
    """Within it the last fit of this process says of each rule what it declines."""
    told: Ruled = {}
    verdicts: dict[str, bool] = {}
    seen: list[tuple[Directions, Directions]] = []

    def watched(name: str) -> Any:
        rule = getattr(trust, name)

        def judged(*given: Any, **named: Any) -> trust.TrustVerdict:
            verdict: trust.TrustVerdict = rule(*given, **named)
            verdicts[name] = not verdict.intervals
            return verdict

        return judged

    def both(*given: Any, **named: Any) -> Directions:
        found = identifiability.fit_directions(*given, **named)
        with mock.patch.object(identifiability, "_enough", lambda own, *_: np.ones(len(own), bool)):
            seen.append((found, identifiability.fit_directions(*given, **named)))
        return found

    def reported(coding: Any, fit: StandardFit) -> report.Reported:
        found = own(coding, fit)
        q = len(found.coefficients)
        told.clear()
        told.update({_WHOLE[name]: np.full(q, declined) for name, declined in verdicts.items()})
        back = report.back_transform(coding).matrix
        known, clear = (each.mapped(back).flags for each in seen[-1])
        told.update(_of_coefficients(fit, found, known, clear))
        verdicts.clear()
        return found

    own = report.reported
    with ExitStack() as stack:
        for name in _WHOLE:
            stack.enter_context(mock.patch.object(trust, name, watched(name)))
        for module in (newton, whole_newton):
            stack.enter_context(mock.patch.object(module, "fit_directions", both))
        stack.enter_context(mock.patch.object(report, "reported", reported))
        yield told


def _of_coefficients(
    fit: StandardFit, found: report.Reported, known: BoolArray, clear: BoolArray
) -> Ruled:
    """known: (q,) which are estimable by their directions; clear: which would be, however few
    records tell of them.
    """
    most = thresholds.NOISE_ALONE if fit.cut is None else thresholds.PLAIN_NOISE_ALONE
    noise, sampling = (report.roots(x) for x in (found.privacy, found.sampling))
    none = np.zeros(len(known), dtype=bool)
    untold = fit.cut is not None and not fit.cut.told
    return {
        "directions (RESOLVED)": ~clear,
        "records of a direction (LEAST_RECORDS)": clear & ~known,
        "noise (NOISE_ALONE, PLAIN_NOISE_ALONE)": noise > most.value * sampling,
        "the tail before the cut (BULK_INDEX)": none | untold,
        "events of a level (LEAST_RECORDS)": none if fit.sparse is None else fit.sparse,
        "events of a coefficient (LEAST_EVENTS)": none
        if fit.events is None
        else np.asarray(fit.events < thresholds.LEAST_EVENTS.value),
    }
