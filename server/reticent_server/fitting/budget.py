# SPDX-License-Identifier: Apache-2.0
"""What part of ρ goes to which release of a fit: planned from (q, n, ρ) and the score's bound
alone.

η = √q·2RK·unit/(n√(2ρ) κh̄) is the noise of one whole step in the predictor (in units of the
response's scale, or of the link's), with R² the radius, K the score's bound, κh̄ the expected
curvature. The squared error e² of the fit and the squared residual scale S² (in units of the
response's) are forecast as

    e₀² = .96, S₁² = 1;   N = η²S²/f,   e² ← e²(g²e² + N)/(e²(1 + g²) + N),
    S² ← min(.04 + e², 1.44S²)

(S = 1 where no scale is measured), which is a step of fitting.filter with a relative curvature
error g: g² = .15² + ν²/2, ν the noise of the last Gram matrix relative to what it measures. The
last step's curvature is released as well, which takes g² to g²ν_J²/(g² + ν_J²). Of a public menu of
rounds of whitening, steps and shares the plan with the smallest last e² is taken. The rounds are
the widest that are still precise: a Gram matrix with a narrow radius has less noise, one with a
wide radius settles the lengths of heavy-tailed directions.

*On a part of the rows.* Early steps of a fit of many records only bring it near its place: they may
go over one unit of `stride` (domain.row_subset), at the same sensitivity, so that N is stride²
times as large there. The solution of the part is off by its sampling error, and e² grows by
PART_OFF (stride − 1) times the fit's sampling variance before each step over all rows: the first
may leave a part of it. The largest stride is taken with which the sum of that variance and the last
e² is hardly larger, and the part has records enough for the shape of the design: the second moment
of each direction has a relative standard error of PART_SPREAD at most, so that the records of a
rare level are not too few.

What the parts of one step cost is less than their sum where they are of one vector of a record
(mechanisms.one_vector): all amounts are raised by one factor until the steps cost ρ. An amount is
thus what its noise would cost alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import product
from math import sqrt

import numpy as np

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.steps import CountSum, FloatArray
from reticent_server.fitting.public.coordinates import normal_size
from reticent_server.mechanisms import one_vector

LENGTH_BINS = 27
"""Of a histogram of persons by length: one for 0, 25 that end at an edge, and what is beyond
(fitting.person_scores).
"""

# a start with none of a fit of R² = .96; its residuals' .04; S² grows by 1.2² a step at most
# (the scale in fitting.huber)
START_ERROR, ERROR_FLOOR, SCALE_GROWTH = 0.96, 0.04, 1.44
_CURVATURE_ERROR = 0.15  # relative, of an expected curvature: benchmarks of clean designs
_QUIET = 0.05  # η from which on sampling is no longer most of the error, and the meat needs less

# squared radius per coordinate: at 1 most rows are clipped and noise is least; at 4 one normal row
# in 10³ is
NARROW, MIDDLE, WIDE = 1.0, 2.0, 4.0
ROUNDS = (  # (share of ρ, squared radius per coordinate) of each round, from the most thorough
    ((0.04, NARROW), (0.05, WIDE), (0.09, WIDE)),
    ((0.04, NARROW), (0.10, WIDE)),
    ((0.05, NARROW), (0.10, MIDDLE)),
    ((0.05, NARROW), (0.08, NARROW)),
)
# (share of ρ, squared radius) of one coordinate, which needs its length only; the forecast picks
# one
SINGLE_ROUNDS = (((0.08, NARROW),), ((0.12, NARROW),), ((0.20, NARROW),))
_FIRST_PRECISION, _LAST_PRECISION = 0.35, 0.25  # largest ν of the first and of the last round
_LAST_SHARES = (0.25, 0.4, 0.5, 0.6, 0.7, 0.8)  # of the gradients' ρ, in the last step
_RATIOS = (1.0, 1.4, 2.0, 2.8)  # of a step's ρ to that of the step before, in the others
# Newton steps that are tried: fewer have not converged from a poor start, more divide ρ further
_STEPS = (3, 4, 5, 6)
_ROUNDING = 10**11  # a step's cost is rounded up by a unit, and by 10⁻¹² of it for the floats
LIKELY_SUM = 1.4  # of √(mq) rms: what a person's sum of m scores of rms about √q is clipped at
# of m√q times a row's mean curvature: what a person's Jacobian is clipped at (2 to 3.5 in
# simulations)
LIKELY_REACH = 2.5
_WORTH = 0.6  # of the rows' noise: what a summed Jacobian's has to be below to be worth a histogram
_PERSON_MEAT = (
    0.05  # of ρ: coverage needs it, as the public rows say nothing about how rows of a person agree
)
# of ρ: each of the two histograms that the last clips are chosen by; 60 persons of noise in a bin
# at ε = 1
_LENGTHS = 0.03
_STEP_WORTH = 0.01  # of ln e²: a further step has to gain that much

WHOLE_STEPS = (
    2  # the last ones, which go over all rows: with one the fit stays .3 standard errors off
)
# times the sampling variance by which a part's solution is off: the model's, or twice it where that
# is wrong
PART_OFF = 2.0
_PART_STEPS = 7  # of which all but two cost next to nothing
_STRIDES = (32, 16, 8, 4)  # tried from the largest; 2 would save less than half of the early passes
_PART_RECORDS, _PART_UNITS = 5e4, 1e4  # in a part at least: fits of fewer rows do not gain by it
_PART_SPREAD = 0.01  # of a direction's second moment in the part
# times a fit's variance over all rows, sampling and noise together, that a part's may have
_PART_WORTH = 1.01

Round = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Public sizes of a fit: q, the squared radius R², n, the records that are expected to be in
    use, and the rows of a unit. person_rows: the same where scores are summed by person first
    (fitting.person_scores), else 1. rms: of a row's score q where the model holds, in which the
    lengths of persons' sums are measured. skewed: as of a Signal. unequal: E a²/E a of a weighted
    design's shares a, by which scores vary more than those of as many whole records; else 1.
    spread: of the coordinates (fitting.public.coordinates.moment_spread); infinite where they are
    not known yet, and no fit goes over a part.
    """

    size: int
    radius_squared: float
    n: int
    expected_n: float
    unit_rows: int = 1
    person_rows: int = 1
    rms: float = 1.0
    skewed: bool = False
    unequal: float = 1.0
    spread: float = np.inf

    def of(self, size: int) -> "Sizes":
        """The same of another number of coefficients, with the same R² for each."""
        radius = self.radius_squared * size / self.size
        return self if size == self.size else replace(self, size=size, radius_squared=radius)

    @property
    def person_length(self) -> float:
        """√(mq) rms: about what the sum of a person's m scores is long where they are
        independent.
        """
        return sqrt(self.person_rows * self.size) * self.rms

    def gradient_clip(self, bound: float) -> float:
        """What a unit adds to a gradient, at most, where sup |q| is `bound`; of a person's sum the
        likely clip.
        """
        if self.person_rows > 1:
            return LIKELY_SUM * self.person_length
        return sqrt(self.radius_squared) * bound * self.unit_rows

    def jacobian_distance(self, curvature: float, bound: float) -> float:
        """By how much a Jacobian differs where one unit does: √2 times the rows' bound, or twice
        the likely clip of a person's sum where that is far less. curvature: of a row, expected;
        bound: at most.
        """
        rows = sqrt(2) * self.radius_squared * bound * self.unit_rows
        whole = self._whole_distance(curvature)
        return whole if self.whole_jacobian(curvature, bound) else rows

    def whole_jacobian(self, curvature: float, bound: float) -> bool:
        """Whether a person's Jacobian is summed before it is bounded."""
        rows = sqrt(2) * self.radius_squared * bound * self.unit_rows
        return self.person_rows > 1 and self._whole_distance(curvature) < _WORTH * rows

    def _whole_distance(self, curvature: float) -> float:
        return 2 * LIKELY_REACH * self.person_rows * sqrt(self.size) * self.mean_norm * curvature

    @property
    def mean_norm(self) -> float:
        """κ: the weighted second moment of a normal row."""
        return normal_size(self.radius_squared / self.size, self.size)


@dataclass(frozen=True, slots=True)
class JointParts:
    """Which parts of a fit's step are of one vector (mechanisms.one_vector): gradient and Jacobian
    where `step`, gradient and meat where `meat`. signed: whether a Jacobian's contributions have
    both signs. used: whether the number of records in use is a count beside the first round; a sum
    of weights is not, and is charged alone.
    """

    step: bool = False
    meat: bool = False
    signed: bool = False
    used: bool = True


@dataclass(frozen=True, slots=True)
class FitBudget:
    """ρ (RHO_UNITS) of each release: rounds (ρ, squared radius), gradients (T,), scales (T − 1, T,
    or none), jacobians (T,), 0 where a step releases none, meat of the last step, count of a masked
    design. eta: η. precision: ν of the last round. size: q. joint: which parts of a step are of one
    vector. lengths: of the histogram of the lengths of persons' scores, 0 where scores are those of
    rows; reaches: of that of their Jacobians, 0 where these are. tail, rows_tail: of the lengths of
    scores that are cut as a whole and of their rows (fitting.whole_newton), 0 elsewhere. stride: of
    the units that early passes go over (`on_part`); 1: all. entries: of a score, 0 where these are
    q.
    """

    rounds: tuple[tuple[int, float], ...]
    gradients: tuple[int, ...]
    scales: tuple[int, ...]
    jacobians: tuple[int, ...]
    meat: int
    count: int
    eta: float
    precision: float
    size: int
    joint: "JointParts"
    lengths: int = 0
    reaches: int = 0
    stride: int = 1
    tail: int = 0
    rows_tail: int = 0
    entries: int = 0

    @property
    def steps(self) -> int:
        """T, the number of Newton steps."""
        return len(self.gradients)

    def on_part(self, t: int) -> bool:
        """Whether step t goes over a part of the rows, and the scale after it."""
        return self.stride > 1 and t < self.steps - WHOLE_STEPS

    def after_part(self, t: int) -> bool:
        """Whether step t goes over all rows where earlier ones did not."""
        return self.stride > 1 and not self.on_part(t)

    def round_on_part(self, k: int) -> bool:
        """Whether the round k of the whitening does: not the one that counts the records in use,
        nor the last, whose coordinates weigh the records.
        """
        counts = k == 0 and self.count > 0
        return self.stride > 1 and not counts and k < len(self.rounds) - 1

    @property
    def part_passes(self) -> int:
        """Passes over a part of the rows."""
        rounds = sum(map(self.round_on_part, range(len(self.rounds))))
        steps = sum(map(self.on_part, range(self.steps)))
        scales = sum(map(self.on_part, range(self.scale_steps)))
        return rounds + steps + scales + (self.stride > 1 and self.lengths > 0)

    @property
    def scale_steps(self) -> int:
        """Passes over the residuals; a T-th scale is a part of the last step (fitting.joint)."""
        return min(len(self.scales), self.steps - 1)

    def counts(self, unit_rows: int) -> tuple[CountSum, ...]:
        """The parts that may be counts: of the records in use, of residuals (a family may sum these
        instead), and of persons by the lengths of what their rows add up to.
        """
        amounts = (self.count, *self.scales)  # a weighted design's are sums, and cost the same
        persons = (self.lengths, self.reaches)
        return (
            *(CountSum(1, rho, unit_rows) for rho in amounts if rho),
            *(CountSum(LENGTH_BINS, rho) for rho in persons if rho),
        )

    def shares(self, profile: int = 0) -> dict[str, float]:
        """What part of ρ goes where: of what the parts would cost alone, which is more than ρ
        together. profile: ρ of an own profile.
        """
        lengths = self.lengths + self.reaches + self.tail + self.rows_tail
        amounts = {
            "profile": profile,
            "records_in_use": self.count,
            "whitening": sum(rho for rho, _ in self.rounds),
            "gradients": sum(self.gradients),
            "jacobians": sum(self.jacobians),
            "scales": sum(self.scales),
            "meat": self.meat,
            **({"lengths": lengths} if lengths else {}),
        }
        whole = sum(amounts.values())
        return {name: amount / whole for name, amount in amounts.items()}

    @property
    def rho(self) -> int:
        """What all steps cost: parts of one vector together."""
        (first, _), *others = self.rounds
        used = self.count if self.joint.used else 0
        whitening = one_vector.rho(self.size, curvature=first, used=used) + self.count - used
        rest = sum(r for r, _ in others) + sum(self.scales) + self.lengths + self.reaches
        rest += self.tail + self.rows_tail
        return whitening + rest + sum(map(self._step, range(self.steps)))

    def rho_by_group(self, *, counted: bool) -> int:
        """What the same steps cost of disjoint groups together: twice a count of one bin, and no
        more of all else (mechanisms.disjoint_groups). counted: whether scales are measured by such
        counts.
        """
        (first, _), *_ = self.rounds
        alone = one_vector.rho(self.size, curvature=first, used=self.count)
        moved = first + 2 * self.count
        scales = sum(self.scales[: self.scale_steps]) if counted else 0
        return self.rho + max(0, moved - alone) + scales

    def _step(self, t: int) -> int:
        gradient, jacobian = self.gradients[t], self.jacobians[t]
        meat = self.meat if t == self.steps - 1 else 0
        within = meat if self.joint.meat else 0
        curvature = jacobian if self.joint.step else 0
        if not within + curvature:
            return gradient + jacobian + meat
        together = one_vector.rho(
            self.entries or self.size,
            vector=gradient,
            curvature=curvature,
            meat=within,
            signed=self.joint.signed,
        )
        return together + jacobian - curvature + meat - within

    def with_meat_of(self, entries: int, rho: int) -> "FitBudget":
        """The meat as that of the scores' own vector (entries,), which has no other part of the
        step; at `rho`.
        """
        joint = replace(self.joint, meat=True)
        return raised(replace(self, joint=joint, entries=entries), rho)


def raised(budget: FitBudget, rho: int) -> FitBudget:
    """All amounts by one factor, so that the steps cost at most `rho`, and less by a few units
    only.
    """
    whole = budget.rho
    target = rho - len(budget.rounds) - budget.steps - rho // _ROUNDING

    def more(amount: int) -> int:
        return amount * target // whole

    found = replace(
        budget,
        rounds=tuple((more(r), radius) for r, radius in budget.rounds),
        gradients=tuple(map(more, budget.gradients)),
        scales=tuple(map(more, budget.scales)),
        jacobians=tuple(map(more, budget.jacobians)),
        meat=more(budget.meat),
        count=more(budget.count),
        lengths=more(budget.lengths),
        reaches=more(budget.reaches),
        tail=more(budget.tail),
        rows_tail=more(budget.rows_tail),
        precision=budget.precision * sqrt(whole / target),
    )
    return found if whole < target and found.rho <= rho else budget


@dataclass(frozen=True, slots=True)
class EarlyJacobian:
    """Shares of ρ of a Jacobian in the last step but one: where there is little noise, and
    elsewhere.
    """

    quiet: float
    noisy: float

    def share(self, eta: float) -> float:
        """At η."""
        return self.quiet if eta < _QUIET else self.noisy


NO_EARLY_JACOBIAN = EarlyJacobian(0.0, 0.0)
"""Far from the solution it tells nothing of the one there."""
QUIET_JACOBIAN = EarlyJacobian(0.04, 0.0)
"""It is worth its share where sampling is most of the error."""
BENT_JACOBIAN = EarlyJacobian(0.08, 0.08)
"""The curvature changes on the way: what is expected of it is wrong."""


@dataclass(frozen=True, slots=True)
class Signal:
    """What a family's score is: bound K, expected curvature h̄ of a settled fit, unit (as of a
    Score) at the start.

    curvature_bound: sup |h|. scaled: whether a scale is measured; joint: whether in the last step
    as well. early_jacobian: what a Jacobian before the last step is worth (fitting.curvature says
    it of a score). centred: whether gradients are about 0 at any θ (fitting.score.Ball). signed:
    whether curvatures have both signs. rms: of the score where the model holds. skewed: whether it
    is where the model holds, so that a clipped sum of scores is not 0 on average. whole: whether
    the last scores are cut as a whole; bent: whether its mean then bends on the way.
    """

    bound: float
    curvature: float
    scaled: bool
    unit: float = 1.0
    joint: bool = False
    curvature_bound: float = 1.0
    early_jacobian: EarlyJacobian = QUIET_JACOBIAN
    centred: bool = False
    signed: bool = False
    rms: float = 1.0
    skewed: bool = False
    whole: bool = False
    bent: bool = False

    @property
    def together(self) -> JointParts:
        """A moved gradient is not along the record's vector; a joint meat is that of a longer
        one.
        """
        return JointParts(self.centred, self.centred and not self.joint, self.signed)


def noise_ratio(sizes: Sizes, rho: int, signal: Signal) -> float:
    """η."""
    whole = sqrt(2 * rho / RHO_UNITS) * sizes.expected_n
    gain = sizes.mean_norm * signal.curvature
    clip = sizes.gradient_clip(signal.bound) * sqrt(sizes.size)
    return 2 * clip * signal.unit / (whole * gain)


def _over_steps(share: float, measured: int, *, to_last: bool) -> tuple[float, ...]:
    """The shares of the scale's measurements, alike. to_last: half of them is the last one's, whose
    noise moves the solution of skewed scores (fitting.scale)."""
    if not measured:
        return ()
    last = max(share / measured, to_last * share / 2)
    return (*(((share - last) / max(measured - 1, 1),) * (measured - 1)), last)


def plan_budget(
    sizes: Sizes, rho: int, signal: Signal, *, masked: bool, weighted: bool = False
) -> FitBudget:
    """Splits `rho` (RHO_UNITS) over the releases; their steps cost at most rho, and a few units
    less where parts are joint.
    """
    eta = noise_ratio(sizes, rho, signal)
    of_persons = sizes.person_rows > 1
    meat = _PERSON_MEAT if of_persons else 0.10 if eta < _QUIET else 0.03
    scales = 0.03 if signal.scaled else 0.0
    count = 0.01 if masked or weighted else 0.0
    early = signal.early_jacobian.share(eta)
    lengths = _LENGTHS if of_persons else 0.0
    whole = sizes.whole_jacobian(signal.curvature, signal.curvature_bound)
    reaches = _LENGTHS if whole else 0.0
    fixed = meat + scales + count + early + lengths + reaches
    rounds, jacobian, fractions = _chosen(sizes, rho, signal, eta, fixed)
    stride, fractions = _on_part(sizes, rho, signal, (rounds, jacobian, fractions), fixed)
    gradients = 1 - fixed - jacobian - sum(s for s, _ in rounds)
    T = len(fractions)
    measured = (T if signal.joint and not of_persons else T - 1) if scales else 0
    weights = (
        *(share for share, _ in rounds),
        *(gradients * f for f in fractions),
        *_over_steps(scales, measured, to_last=signal.skewed and of_persons),
        *((count,) if count else ()),
        *((lengths,) if lengths else ()),
        *((reaches,) if reaches else ()),
        *((early,) if early else ()),
        meat,
        jacobian,
    )
    *spent, meat_rho, last = allocate(rho, weights)
    parts = iter(spent)
    budget = FitBudget(
        rounds=tuple((next(parts), radius) for _, radius in rounds),
        gradients=tuple(next(parts) for _ in fractions),
        scales=tuple(next(parts) for _ in range(measured)),
        count=next(parts) if count else 0,
        lengths=next(parts) if lengths else 0,
        reaches=next(parts) if reaches else 0,
        jacobians=_placed(T, next(parts) if early else 0, last, at=T - 2 - (stride > 1)),
        meat=meat_rho,
        eta=eta,
        precision=precision(sizes, rho, rounds[-1]),
        size=sizes.size,
        joint=replace(JointParts() if lengths else signal.together, used=not weighted),
        stride=stride,
    )
    return raised(budget, rho)


def _on_part(
    sizes: Sizes,
    rho: int,
    signal: Signal,
    chosen: tuple[tuple[Round, ...], float, tuple[float, ...]],
    fixed: float,
) -> tuple[int, tuple[float, ...]]:
    """The stride of early passes and the fractions of the gradients' ρ; 1 and those of `chosen`
    where a part is too small.

    chosen: rounds, the Jacobian's share, and the fractions of a fit over all rows.
    """
    rounds, jacobian, fractions = chosen
    eta = noise_ratio(sizes, rho, signal) / sqrt(1 - fixed - jacobian - sum(s for s, _ in rounds))
    nu, nu_J = precision(sizes, rho, rounds[-1]), _jacobian_noise(sizes, rho * jacobian, signal)
    (whole,) = forecast_errors(np.array(fractions)[:, None], eta, nu, nu_J, scaled=signal.scaled)
    sampling = _sampling(sizes, signal)
    menu = _menu(_PART_STEPS)
    for stride in _strides(sizes):
        if any(stride * precision(sizes, rho, r) > _FIRST_PRECISION for r in rounds[:-1]):
            continue
        strides = (*(stride,) * (_PART_STEPS - WHOLE_STEPS), *(1,) * WHOLE_STEPS)
        part = PartErrors(strides, PART_OFF * (stride - 1) * sampling)
        errors = forecast_errors(menu, eta, nu, nu_J, scaled=signal.scaled, part=part)
        at = int(np.argmin(errors))
        if errors[at] + sampling <= _PART_WORTH * (whole + sampling):
            return stride, tuple(menu[:, at].tolist())
    return 1, fractions


def _strides(sizes: Sizes) -> Sequence[int]:
    """Those that leave records enough, by their number and by how they are spread over
    directions.
    """
    least = max(_PART_RECORDS, _PART_UNITS * sizes.unit_rows, (sizes.spread / _PART_SPREAD) ** 2)
    return [stride for stride in _STRIDES if stride * least <= sizes.expected_n]


def _sampling(sizes: Sizes, signal: Signal) -> float:
    """The sampling variance of a predictor, in the units of e²: of a person's rows as if they were
    one.
    """
    records = sizes.expected_n / (sizes.unequal * sizes.unit_rows)
    residual = ERROR_FLOOR if signal.scaled else (signal.rms / signal.curvature) ** 2
    return sizes.size * residual / records


@dataclass(frozen=True, slots=True)
class PartErrors:
    """Errors of a fit whose early steps go over parts of the rows: the stride of each step, 1 for
    all rows; what e² grows by before each of these."""

    strides: tuple[int, ...]
    off: float


def _placed(steps: int, early: int, last: int, at: int) -> tuple[int, ...]:
    """ρ of each step's Jacobian."""
    return tuple(early if t == at else last if t == steps - 1 else 0 for t in range(steps))


def precision(sizes: Sizes, rho: int, round_: Round) -> float:
    """ν: the operator norm of a round's noise relative to the clipped moment of a normal design."""
    share, factor = round_
    q = sizes.size
    sd = sqrt(2) * factor * q * sizes.unit_rows / sqrt(2 * share * rho / RHO_UNITS)
    return sd * sqrt(2 * q) / (sizes.expected_n * normal_size(factor, q))


def _chosen(
    sizes: Sizes, rho: int, signal: Signal, eta: float, fixed: float
) -> tuple[tuple[Round, ...], float, tuple[float, ...]]:
    """Rounds, the Jacobian's share, and the gradients' fractions of what is left."""
    best: tuple[float, tuple[Round, ...], float, tuple[float, ...]] | None = None
    for rounds in affordable_rounds(sizes, rho):
        nu = precision(sizes, rho, rounds[-1])
        for jacobian in (0.08,) if eta < _QUIET else (0.04, 0.08, 0.12):
            left = 1 - fixed - jacobian - sum(s for s, _ in rounds)
            nu_J = _jacobian_noise(sizes, rho * jacobian, signal)
            value, fractions = _best_fractions(eta / sqrt(left), nu, nu_J, scaled=signal.scaled)
            if best is None or value < best[0]:
                best = value, rounds, jacobian, fractions
    assert best is not None  # noqa: S101 - the menu is not empty
    return best[1:]


def affordable_rounds(sizes: Sizes, rho: int) -> tuple[tuple[Round, ...], ...]:
    """The rounds of a whitening that are still precise; a few single ones to choose from where none
    are.
    """
    for rounds in ROUNDS:
        *first, last = (precision(sizes, rho, r) for r in rounds)
        if max(first) <= _FIRST_PRECISION and last <= _LAST_PRECISION:
            return (rounds,)
    return SINGLE_ROUNDS


def _jacobian_noise(sizes: Sizes, rho: float, signal: Signal) -> float:
    """ν_J: noise of the last Jacobian, as a vector of a step sees it, relative to what it
    measures.
    """
    distance = sizes.jacobian_distance(signal.curvature, signal.curvature_bound)
    sd = distance / sqrt(2 * rho / RHO_UNITS)
    return sd * sqrt(sizes.size) / (sizes.expected_n * sizes.mean_norm * signal.curvature)


@lru_cache(maxsize=1024)
def _best_fractions(
    eta: float, nu: float, nu_J: float, *, scaled: bool
) -> tuple[float, tuple[float, ...]]:
    """The least ln e² over the menu, and its fractions; eta: at the gradients' whole ρ."""
    candidates = []
    for T in _STEPS:
        menu = _menu(T)
        errors = np.log(forecast_errors(menu, eta, nu, nu_J, scaled=scaled)) + _STEP_WORTH * T
        at = int(np.argmin(errors))
        candidates.append((float(errors[at]), tuple(menu[:, at].tolist())))
    return min(candidates)


@cache
def _menu(steps: int) -> FloatArray:
    """(steps, menu) fractions."""
    pairs = product(_LAST_SHARES, _RATIOS)
    return np.array([_fractions(steps, last, ratio) for last, ratio in pairs]).T


def _fractions(steps: int, last: float, ratio: float) -> tuple[float, ...]:
    raw = [ratio**t for t in range(steps - 1)]
    return (*((1 - last) * r / sum(raw) for r in raw), last)


def forecast_errors(
    fractions: FloatArray,
    eta: float,
    nu: float,
    nu_J: float,
    *,
    scaled: bool,
    part: PartErrors | None = None,
) -> FloatArray:
    """(menu,) the last e² of fractions (T, menu) under the module's recursion."""
    wrong = _CURVATURE_ERROR**2 + min(nu, 1.0) ** 2 / 2
    settled = wrong * nu_J**2 / (wrong + nu_J**2)
    e = np.full(fractions.shape[1], START_ERROR)
    S = np.ones(fractions.shape[1])
    strides = (1,) * len(fractions) if part is None else part.strides
    for t, (f, stride) in enumerate(zip(fractions, strides, strict=True)):
        if part is not None and t >= len(fractions) - WHOLE_STEPS:
            e = e + part.off
        g = settled if t == len(fractions) - 1 else wrong
        N = (eta * stride) ** 2 * S / f
        e = e * (g * e + N) / (e * (1 + g) + N)
        S = np.minimum(ERROR_FLOOR + e, SCALE_GROWTH * S) if scaled else S
    return e


def allocate(rho: int, weights: tuple[float, ...]) -> tuple[int, ...]:
    """Splits an integer ρ in proportion to weights (Σ = 1): each part at least 1, exact in sum.

    What rounding down leaves goes to the last part.
    """
    parts = [max(1, int(rho * w)) for w in weights[:-1]]
    return (*parts, max(1, rho - sum(parts)))
