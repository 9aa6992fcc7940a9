# SPDX-License-Identifier: Apache-2.0
"""What analysts can learn at a cap: the planned errors of typical questions, each at the same ε,
and how many of them a cap has room for. From public facts: plans are made, nothing is charged and
no record is read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import floor, isfinite, log10
from statistics import median
from typing import Any

from reticent_server.accounting import gaussian
from reticent_server.accounting.conversions import epsilon_of, zcdp_caps
from reticent_server.domain.amounts import Amounts, Rule
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, from_units
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.precision import ForecastPrecision
from reticent_server.domain.query import Privacy, Query
from reticent_server.errors import InvalidRequest, ReticentError
from reticent_server.kinds import KINDS
from reticent_server.kinds.base import Kind
from reticent_server.ledger.model import Balance
from reticent_server.ledger.rules import budget, charge
from reticent_server.pipeline import planning

MOST_QUESTIONS = 100_000
"""Of a simulation: at more, each has an ε at which nothing is planned."""

_DIGITS = 3  # significant ones of an ε that is shown, rounded down so that the questions fit


@dataclass(frozen=True, slots=True)
class Ruled:
    """An account that may not exist: its rule, (ε, δ) as given, and what its rule makes of them.
    delta: of it, as a float.
    """

    rule: Rule
    epsilon: float
    delta: float
    cap: Amounts


@dataclass(frozen=True, slots=True)
class TypicalAnswer:
    """A typical question at the ε. ratio, worst: the middle and the largest width of its intervals
    relative to that without privacy. half_width: half of a 95 % interval in the units of the
    answer, of a number or of the counts of a table; the coefficients of a fit have each its own.
    None: there is none, or public facts do not say. room: how many such the whole cap has room for.
    refused: why it cannot be planned; else empty.
    """

    kind: Kind[Any]
    query: Query
    ratio: float | None = None
    worst: float | None = None
    half_width: float | None = None
    is_lost: bool = False
    room: int = 0
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Simulation:
    """answers: at `epsilon` each. room: how many questions the cap has room for, whichever of them
    are asked.
    """

    account: Ruled
    epsilon: float
    questions: int
    answers: tuple[TypicalAnswer, ...]

    @property
    def room(self) -> int:
        """The least room over the answers that can be planned; 0 where none can."""
        return min((each.room for each in self.answers if not each.refused), default=0)


def ruled(balance: Balance | None, epsilon: float, delta: float) -> Ruled:
    """The account of a cap (epsilon, delta) under the rule that there is, zcdp for a new one.
    Raises InvalidPrivacy.
    """
    rule: Rule = "zcdp" if balance is None else balance.rule
    second = balance.cap.secondary if balance is not None and rule != "basic" else None
    same = balance is not None and delta == from_units(balance.delta, DELTA_UNITS)
    cap = budget(epsilon, delta, rule, zcdp_caps, second if same else None).cap
    return Ruled(rule, epsilon, delta, cap)


def simulate(
    facts: DatasetFacts, account: Ruled, questions: int, epsilon: float | None = None
) -> Simulation:
    """epsilon: of each question; None: the cap is split evenly over them. Raises InvalidRequest for
    a number of questions out of range; what a question is refused for is said at it.
    """
    if not 1 <= questions <= MOST_QUESTIONS:
        raise InvalidRequest(f"The number of questions is 1 to {MOST_QUESTIONS:,}.")
    each = _even(facts, account, questions) if epsilon is None else epsilon
    answers = [_answer(facts, account, kind, query, each) for kind, query in _typical(facts)]
    return Simulation(account, each, questions, tuple(answers))


def _typical(facts: DatasetFacts) -> list[tuple[Kind[Any], Query]]:
    return [(kind, query) for kind in KINDS for query in kind.typical(facts.schema)]


def _even(facts: DatasetFacts, account: Ruled, questions: int) -> float:
    """The ε of each of so many questions that together take the cap; rounded down."""
    share = account.cap.primary // questions
    if account.rule == "basic":
        return _rounded_down(from_units(share, EPSILON_UNITS))
    turned = epsilon_of if account.rule == "zcdp" else gaussian.epsilon_of
    return _rounded_down(turned(share, facts.default_delta))


def _rounded_down(value: float) -> float:
    if value <= 0:
        return 0.0
    unit = 10.0 ** (floor(log10(value)) - _DIGITS + 1)
    return float(f"{floor(value / unit) * unit:.{_DIGITS}g}")


def _answer(
    facts: DatasetFacts, account: Ruled, kind: Kind[Any], query: Query, epsilon: float
) -> TypicalAnswer:
    answer = TypicalAnswer(kind, query)
    privacy = Privacy(epsilon, facts.default_delta)
    try:
        plan = planning.plan(
            facts,
            query,
            privacy,
            gaussian=account.rule != "zcdp",
            counted=account.rule == "basic",
        )
    except ReticentError as error:
        return replace(answer, refused=error.detail)
    amount = charge(plan.cost, account.rule)
    room = account.cap.primary // amount.primary
    room = min(room, account.cap.secondary // amount.secondary) if amount.secondary else room
    return _with_widths(replace(answer, room=room), plan.planned.precision)


def _with_widths(answer: TypicalAnswer, precision: ForecastPrecision | None) -> TypicalAnswer:
    """Of numbers whose noise is finite; worst None where some are expected to have no interval."""
    if precision is None:
        return answer
    ratios, whole = _finite(precision.ci_ratios)
    halves, _ = _finite(precision.half_widths)
    return replace(
        answer,
        ratio=_of(median, ratios),
        worst=_of(max, ratios) if whole else None,
        half_width=_of(max, halves) if len(precision.names) == 1 or not ratios else None,
        is_lost=not whole and not ratios,
    )


def _finite(values: Sequence[float | None]) -> tuple[list[float], bool]:
    """Those that are finite numbers, and whether all that are known are."""
    known = [v for v in values if v is not None]
    finite = [v for v in known if isfinite(v)]
    return finite, len(finite) == len(known)


def _of(function: Callable[[Sequence[float]], float], values: Sequence[float]) -> float | None:
    return float(function(values)) if values else None
