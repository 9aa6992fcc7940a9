"""A black-box audit through HTTP: what an analyst sees of two neighbouring tables obeys what is charged.

The outcome of a release is (status, value, bucket of its time), the time grid being off. An event is
chosen on one half of the outcomes; on the other its probabilities p and q under the two tables are
bounded by Clopper and Pearson. ρ-zCDP bounds the Rényi divergence of every order α of the outcomes by
αρ, hence that of any event: D_α(p‖q) ≤ αρ for all α.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from scipy.stats import beta

from support_installation import Installation
from support_pair import SIDES, Outcome, load_pair, neighbours, probing

Event = Callable[[Outcome], bool]
ORDERS = np.concatenate([np.linspace(1.05, 4, 20), np.geomspace(4.5, 200, 20)])
CONFIDENCE = 1 - 1e-4
DRAWS = 10_000


def candidates(outcomes: Sequence[Outcome]) -> list[Event]:
    """Events that a prober may choose from: by value, by time, by status, and their complements."""
    values = np.nanquantile([o.value for o in outcomes], np.linspace(0.02, 0.98, 49))
    times = np.quantile([o.seconds for o in outcomes], np.linspace(0.05, 0.95, 19))
    events: list[Event] = [lambda o, t=t: o.value <= t for t in values]
    events += [lambda o, t=t: o.seconds <= t for t in times]
    events += [lambda o, s=s: o.status == s for s in ("reply", "no_reply", "failed")]
    return events + [lambda o, e=e: not e(o) for e in events]


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
    """A ρ that the outcomes prove to be spent, at least, but for a chance of 2·10⁻⁴."""
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


@pytest.mark.parametrize(
    ("scale", "accepted"), [(1.0, True), (0.7, True), (0.5, False), (0.3, False)]
)
def test_the_audit_accepts_the_true_noise_and_rejects_half_of_it(
    scale: float, accepted: bool
) -> None:
    """On simulated counts that differ by 1; 0.7 of the noise is beyond what this many can show."""
    rho, rng = 0.05, np.random.default_rng(1)
    sigma = scale / np.sqrt(2 * rho)
    left, right = (
        [Outcome("reply", v, 0.0, rho) for v in mean + sigma * rng.normal(size=DRAWS)]
        for mean in (0.0, 1.0)
    )
    assert (least_rho(left, right) <= rho) == accepted


@pytest.mark.parametrize("told_by", ["status", "seconds"])
def test_the_audit_sees_a_status_or_a_time_that_tells(told_by: str) -> None:
    rng = np.random.default_rng(2)

    def outcomes(share: float) -> list[Outcome]:
        told = rng.random(4000) < share
        plain = Outcome("reply", 0.0, 0.01, 0.01)
        telling = Outcome("no_reply", 0.0, 0.01, 0.01)
        if told_by == "seconds":
            telling = Outcome("reply", 0.0, 0.02, 0.01)
        return [telling if t else plain for t in told]

    assert least_rho(outcomes(0.1), outcomes(0.4)) > 0.01
    assert least_rho(outcomes(0.1), outcomes(0.1)) == 0.0


QUERIES = {
    "count": {"kind": "count", "where": "k == 0"},
    "linear_regression": {"kind": "linear_regression", "formula": "y ~ x"},
}


@pytest.mark.audit
@pytest.mark.parametrize("kind", list(QUERIES))
def test_releases_of_neighbours_tell_no_more_than_is_charged(
    installation: Installation, kind: str
) -> None:
    """The changed record is as far out as the declared bounds allow."""
    pair = load_pair(installation, *neighbours(60, "-10,5,9,c,1,1"))
    with probing(pair) as prober:
        draws = DRAWS if kind == "count" else DRAWS // 4
        found = prober.outcomes(QUERIES[kind], {"epsilon": 2.0, "delta": 1e-6}, draws)
    left, right = (found[side] for side in SIDES)
    (rho,) = {o.rho for o in (*left, *right)}
    for pair_of_sides in ((left, right), (right, left)):
        assert least_rho(*pair_of_sides) <= rho
