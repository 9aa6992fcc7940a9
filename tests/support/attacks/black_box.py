# SPDX-License-Identifier: Apache-2.0
"""What outcomes of releases on two neighbouring tables prove to be spent.

An event is chosen on one half of the outcomes; on the other its probabilities p and q under the two
tables are bounded by Clopper and Pearson. ρ-zCDP bounds the Rényi divergence of every order α of
the outcomes by αρ, hence that of any event: D_α(p‖q) ≤ αρ for all α.
"""

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter

import numpy as np
from scipy.stats import beta

from support.attacks.neighbouring_pair import Outcome

Event = Callable[[Outcome], bool]
ORDERS = np.concatenate([np.linspace(1.05, 4, 20), np.geomspace(4.5, 200, 20)])
CONFIDENCE = 1 - 1e-11
"""Of each bound on a probability: two make a proof, and less than a hundred proofs are asked of
real noise, so that one of them fails by luck less than once in 10⁹ / 2 runs of all.
"""


def candidates(outcomes: Sequence[Outcome]) -> list[Event]:
    """Events that a prober may choose from: by value, by time, by status, and their complements."""
    values = np.nanquantile([o.value for o in outcomes], np.linspace(0.02, 0.98, 49))
    times = np.quantile([o.seconds for o in outcomes], np.linspace(0.05, 0.95, 19))
    events = [partial(_least, of=attrgetter("value"), limit=float(t)) for t in values]
    events += [partial(_least, of=attrgetter("seconds"), limit=float(t)) for t in times]
    statuses = [partial(_status, status=s) for s in ("reply", "no_reply", "failed")]
    every: list[Event] = [*events, *statuses]
    return every + [partial(_complement, event=event) for event in every]


def _least(outcome: Outcome, of: Callable[[Outcome], float], limit: float) -> bool:
    return of(outcome) <= limit


def _status(outcome: Outcome, status: str) -> bool:
    return outcome.status == status


def _complement(outcome: Outcome, event: Event) -> bool:
    return not event(outcome)


def chosen(first: Sequence[Outcome], second: Sequence[Outcome]) -> Event:
    """The event whose probabilities differ most, in standard errors."""

    def gap(event: Event) -> float:
        p, q = (np.mean([event(o) for o in side]) for side in (first, second))
        return float((p - q) / np.sqrt(0.5 / len(first) + p * (1 - p) + q * (1 - q)))

    return max(candidates([*first, *second]), key=gap)


def bound(hits: int, count: int, *, upper: bool) -> float:
    """Clopper and Pearson's one-sided bound."""
    if upper:
        return 1.0 if hits == count else float(beta.ppf(CONFIDENCE, hits + 1, count - hits))
    return 0.0 if hits == 0 else float(beta.ppf(1 - CONFIDENCE, hits, count - hits + 1))


def least_rho(left: Sequence[Outcome], right: Sequence[Outcome]) -> float:
    """A ρ that the outcomes prove to be spent, at least, but for a chance of 2·10⁻¹¹."""
    half = len(left) // 2
    event = chosen(left[:half], right[:half])
    hits = [sum(map(event, side[half:])) for side in (left, right)]
    p = bound(hits[0], len(left) - half, upper=False)
    q = bound(hits[1], len(right) - half, upper=True)
    if p <= q or q >= 1:
        return 0.0
    a = ORDERS
    divergence = np.log(p**a * q ** (1 - a) + (1 - p) ** a * (1 - q) ** (1 - a)) / (a - 1)
    return float(np.max(divergence / a))
