# SPDX-License-Identifier: Apache-2.0
"""An auditor outside of the mechanisms: every draw of a release is written down, and played back on
a neighbour.

The auditor knows four primitives (discrete Gaussian, discrete Laplace, selection, the depth draw)
and nothing of the plan that asked for them, but which parts of a step are of one vector of a
record. A release of a table D is recorded: each primitive's argument, scale and output. The same
plan is then run on a neighbour D′, where each primitive gives the output that was recorded, so both
runs go the same way. From the two arguments and the scale of a call follows what that call could
lose at most between these two tables, whatever the mechanism's documentation says: ‖x − x′‖²/(2σ²)
of zCDP for Gaussian noise, |x − x′|/b of ε for Laplace noise, the range of the log-ratios of the
weights for a selection (Dong, Durfee & Rogers 2020). Their sum is compared with the charge.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Plan, Release
from reticent_server.domain.private import Private
from reticent_server.domain.reservation import Reservation
from reticent_server.domain.steps import (
    ByGroup,
    CountSum,
    GramSum,
    OneVector,
    Part,
    SumStep,
    VectorSum,
)
from reticent_server.engine.local import LocalEngine
from reticent_server.mechanisms import (
    _sampler,
    convex_fit,
    depth_proposals,
    noisy_sum,
    registry,
    running_counts,
    secret_rows,
    selection,
    subsample_aggregate,
)
from reticent_server.vault.places import ABSENT_MASK

Table = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Call:
    """One draw. argument: the private integers. scale: σ, b, or a selection's ladder. part: the
    number of the part of a step of sums that it belongs to, None elsewhere. sensitivity: what the
    scale was asked for, where it was.
    """

    primitive: str
    argument: np.ndarray
    scale: Any
    output: Any
    part: int | None
    sensitivity: float | None


@dataclass(frozen=True)
class Loss:
    """What one call can lose between two tables. rho: zCDP. epsilon: of pure DP; None for Gaussian
    noise.
    """

    rho: float
    epsilon: float | None


@dataclass(frozen=True)
class Run:
    """What a release drew, and what it said. steps: of sums, each with the number of its first
    part.
    """

    calls: list[Call]
    release: Release
    steps: list[tuple[int, SumStep]]


@dataclass
class Recorder:
    """The calls of one run. replayed: the outputs that are given back in their order; None: real
    draws.
    """

    replayed: Sequence[Call] | None = None
    calls: list[Call] = field(default_factory=list)
    asked: dict[float, float] = field(default_factory=dict)
    steps: list[tuple[int, SumStep]] = field(default_factory=list)
    parts: int = 0
    part: int | None = None
    within: bool = False
    pricing: bool = False

    def call(self, primitive: str, argument: Any, scale: Any, draw: Callable[[], Any]) -> Any:
        if self.replayed is None:
            self.within = True
            output = draw()
            self.within = False
        else:
            before = self.replayed[len(self.calls)]
            assert before.primitive == primitive
            output = before.output
        known = self.asked.get(scale) if isinstance(scale, float) else None
        found = np.array(argument, dtype=np.int64)
        self.calls.append(Call(primitive, found, scale, output, self.part, known))
        return output


@contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """Every way to randomness goes through the recorder; another one raises."""
    with pytest.MonkeyPatch.context() as patch:
        _record_noise(patch, recorder)
        _record_choices(patch, recorder)
        for module in (noisy_sum, running_counts, convex_fit):
            patch.setattr(module, "smallest_scale", _asking(module.smallest_scale, recorder))
        patch.setattr(registry, "release", _numbered(registry.release, recorder))
        patch.setattr(registry, "rho", _noting(registry.rho, recorder))
        for name in ("below", "words"):
            patch.setattr(_sampler, name, _guarded(getattr(_sampler, name), recorder))
        patch.setattr(secret_rows, "secret_key", lambda: bytes(secret_rows.KEY_BYTES))
        patch.setattr(subsample_aggregate, "secret_order", np.arange)
        yield


def _record_noise(patch: pytest.MonkeyPatch, recorder: Recorder) -> None:
    for kind in (_sampler.DiscreteGaussian, _sampler.Laplace):
        add = kind.add

        def recorded(self: Any, values: Any, add: Any = add, name: str = kind.__name__) -> Any:
            return recorder.call(name, values, self.scale, lambda: add(self, values))

        patch.setattr(kind, "add", recorded)


def _record_choices(patch: pytest.MonkeyPatch, recorder: Recorder) -> None:
    select, draw = selection.select, depth_proposals.draw

    def selected(levels: Any, ladder: Any) -> Any:
        return recorder.call("select", levels.unwrap(), ladder, lambda: select(levels, ladder))

    patch.setattr(selection, "select", selected)
    patch.setattr(
        depth_proposals, "draw", lambda law: recorder.call("draw", [], 0.0, lambda: draw(law))
    )


def _asking(smallest: Any, recorder: Recorder) -> Any:
    def asked(sensitivity: float, rho: float) -> float:
        scale = float(smallest(sensitivity, rho))
        recorder.asked[scale] = sensitivity
        return scale

    return asked


def _numbered(release: Any, recorder: Recorder) -> Any:
    def numbered(part: Any, total: Any) -> Any:
        recorder.part, recorder.parts = recorder.parts, recorder.parts + 1
        try:
            return release(part, total)
        finally:
            recorder.part = None

    return numbered


def _noting(rho: Any, recorder: Recorder) -> Any:
    def noted(step: SumStep) -> Any:
        """Of a step by groups, which asks what each group's costs, the step itself; once, where it
        is priced in two ways.
        """
        if recorder.pricing:
            return rho(step)
        if not recorder.steps or recorder.steps[-1][1] is not step:
            recorder.steps.append((recorder.parts, step))
        recorder.pricing = True
        try:
            return rho(step)
        finally:
            recorder.pricing = False

    return noted


def _guarded(draw: Any, recorder: Recorder) -> Any:
    def guarded(count: int) -> Any:
        assert recorder.within, "randomness that no primitive has asked for"
        return draw(count)

    return guarded


class Served:
    """A table behind an engine that asks nobody whether it was paid for."""

    def __init__(self, facts: DatasetFacts, table: Table) -> None:
        self.n = facts.slots
        # A person's places without a row: none, where the table does not say.
        every = {ABSENT_MASK: np.zeros(self.n, np.bool_)} if facts.schema.unit.many_rows else {}
        self._table, self._masks = {**every, **table}, [*every]

    def batches(self, names: Sequence[str]) -> Iterator[Private[pa.RecordBatch]]:
        keys = [key for k in names for key in (k, f"{k}:missing") if key in self._table]
        keys += self._masks
        yield Private(pa.RecordBatch.from_pydict({k: pa.array(self._table[k]) for k in keys}))

    def confirm(self, reservation: Reservation) -> bool:
        return True

    def run(self, plan: Plan, replayed: Sequence[Call] | None = None) -> "Run":
        """One release and its calls. Fails where the release fails, or draws less than it did
        before.
        """
        recorder = Recorder(replayed)
        engine = LocalEngine(lambda _: self, self, cache_bytes=1 << 22, threads=1, block_rows=4096)
        try:
            with warnings.catch_warnings(), recording(recorder):
                warnings.simplefilter("ignore")
                release = engine.execute(plan, Reservation("r", "v", plan.cost, ""))
        finally:
            engine.close()
        assert release.status in {"reply", "no_reply"}
        assert replayed is None or len(recorder.calls) == len(replayed)
        return Run(recorder.calls, release, recorder.steps)


def loss(call: Call, other: Call) -> Loss:
    """What the call can lose between the two tables; of noise with a private scale, what it loses
    at its output.
    """
    moved = np.abs(call.argument.astype(float) - other.argument.astype(float))
    match call.primitive:
        case "DiscreteGaussian" if call.scale == other.scale:
            return Loss(float((moved**2).sum()) / (2 * call.scale**2), None)
        case "Laplace" if call.scale == other.scale:
            return _pure(float(moved.sum()) / call.scale)
        case "DiscreteGaussian":
            at = abs(_log_gaussian(call, call.output) - _log_gaussian(other, call.output))
            return _pure(float(at))
        case "Laplace":
            at = abs(_log_laplace(call, call.output) - _log_laplace(other, call.output))
            return _pure(float(at))
        case "select":
            assert call.scale == other.scale
            epsilon = float(np.ptp(_log_weights(call) - _log_weights(other)))
            return Loss(epsilon**2 / 8, epsilon)
        case _:
            raise AssertionError(f"the auditor cannot measure {call.primitive}")


def _pure(epsilon: float) -> Loss:
    return Loss(epsilon**2 / 2, epsilon)


def _log_laplace(call: Call, output: Any) -> float:
    away = np.abs(np.asarray(output, dtype=float) - call.argument)
    return float((np.log(np.tanh(1 / (2 * call.scale))) - away / call.scale).sum())


def _log_gaussian(call: Call, output: Any) -> float:
    away = np.asarray(output, dtype=float) - call.argument
    return float((-np.log(call.scale) - away**2 / (2 * call.scale**2)).sum())


def _log_weights(call: Call) -> np.ndarray:
    octaves, mantissas = selection.weights(call.argument, call.scale.bits)
    logs = np.log(mantissas.astype(float)) - octaves.astype(float) * np.log(2.0)
    return np.asarray(logs)


def total(before: Sequence[Call], after: Sequence[Call]) -> Loss:
    """Over all calls of a release: losses add up (basic composition, and that of zCDP)."""
    losses = [
        loss(*pair) for pair in zip(before, after, strict=True) if pair[0].primitive != "draw"
    ]
    pure = [each.epsilon for each in losses if each.epsilon is not None]
    return Loss(sum(each.rho for each in losses), sum(pure) if len(pure) == len(losses) else None)


def billed(run: Run) -> float:
    """Over the parts of sums Δ²/(2σ²), at the Δ that was asked for and the σ that was used; added
    up, but for parts of one vector, of which the worst pair is looked for. (The two draws of a Gram
    matrix are one part: each bills all of it.)
    """
    bills: dict[int, float] = {}
    for call in run.calls:
        if call.part is not None and call.primitive == "DiscreteGaussian":
            assert call.sensitivity is not None, "noise of a scale that nobody has asked for"
            rho = call.sensitivity**2 / (2 * call.scale**2)
            bills[call.part] = max(rho, bills.get(call.part, 0.0))
    for first, step in run.steps:
        if isinstance(step.joint, ByGroup):
            mine = [bills.pop(first + k, 0.0) for k in range(len(step.parts))]
            bills[first] = _worst_groups(step, step.joint, mine)
        elif step.joint is not None:
            together = {place: bills.pop(first + place) for place in step.joint.places}
            bills[first] = bills.get(first, 0.0) + _worst_pair(step, step.joint, together)
    return sum(bills.values())


def _worst_groups(step: SumStep, joint: ByGroup, bills: Sequence[float]) -> float:
    """The largest loss over a record that is replaced inside one group, and one that leaves a group
    for another.
    """
    inside, leaving = [], []
    ends = np.cumsum(joint.sizes).tolist()
    for end, size, each in zip(ends, joint.sizes, joint.each, strict=True):
        parts, mine = step.parts[end - size : end], dict(enumerate(bills[end - size : end]))
        leaving.append(sum(mine[k] * _left(part) for k, part in enumerate(parts)))
        if each is not None:
            own = {place: mine.pop(place) for place in each.places}
            mine[-1] = _worst_pair(replace(step, parts=parts), each, own)
        inside.append(sum(mine.values()))
    return max(*inside, sum(sorted(leaving)[-2:]))


def _left(part: Part) -> float:
    """(‖a record‖/Δ)²."""
    if isinstance(part, CountSum):
        return 1.0 if part.bins == 1 else 0.5
    return (
        0.25 if isinstance(part, VectorSum) or (isinstance(part, GramSum) and part.signed) else 0.5
    )


_ANGLES = np.linspace(-1, 1, 4001)


def _worst_pair(step: SumStep, joint: OneVector, bills: Mapping[int, float]) -> float:
    """The largest loss over pairs of vectors αx, βx of length 1 or 0, at all cosines of the angle
    between them.
    """
    gradient, meat, curvature, used = (
        0.0 if k is None else bills[k]
        for k in (joint.vector, joint.meat, joint.curvature, joint.used)
    )
    part = None if joint.curvature is None else step.parts[joint.curvature]
    signed = isinstance(part, GramSum) and part.signed
    along, square, most = _ANGLES, _ANGLES**2, 4 if signed else 2
    worst = 0.0
    for first, second in ((1, 0), (1, 1), (1, -1) if signed else (1, 1)):
        moved = first**2 + second**2 - 2 * first * second * square
        pair = gradient * (1 - along) / 2 + meat * (1 - square) + curvature * moved / most
        worst = max(worst, float(pair.max()))
    out = gradient / 4 + meat / 2 + curvature / most + used
    return max(worst, out) if joint.used is not None else worst
