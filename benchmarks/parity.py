# SPDX-License-Identifier: Apache-2.0
"""Do findings of published models come out the same? A scoreboard over whole real tables.

A finding is a slope of a published model that least squares or maximum likelihood with sandwich
errors calls different from 0 at 5 % on the whole table. It comes out the same where the private
95 % interval is on the same side of 0; a slope without an interval does not. A slope that is no
finding has no effect, and comes out the same where no interval leaves 0 out. Each run asks the one
model at ε; the table's profile is released at ε = .5 besides. Tables and their columns' bounds: the
folder of `benchmarks.real_tables`.

Each model is asked in two ways: by least squares or maximum likelihood as published, and by the
kind's own robust fit, which has less noise and a target of its own. A new sample: the share that a
second table of as many records is expected to give without privacy, Φ(|z| − 1.96) for estimates
that are normal about those of the first.

PARITY_RUNS (25): runs of a model at an ε. PARITY_EPSILONS (".5 1 3"): of one ε each finding's share
is printed, too. The same by public tools for synthetic data:
benchmarks.parity_synthetic.
"""

import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from benchmarks.gauntlet.frame import Frame
from benchmarks.real_tables.fast import numpy_noise
from benchmarks.real_tables.models import Folder, RealModel, read_folder
from benchmarks.real_tables.textbook import Textbook, textbook
from reticent_server.domain.steps import FloatArray

RUNS = int(os.environ.get("PARITY_RUNS", "25"))
EPSILONS = tuple(map(float, os.environ.get("PARITY_EPSILONS", ".5 1 3").split()))
LARGE = 5_000  # records from which the goal of .95 is meant
_Z = 1.959964  # of a two-sided test at 5 %
SOURCES = {
    "log wage, CPS1988": "Bierens & Ginther 2001",
    "college distance": "Rouse 1995",
    "log duration, did": "Meyer, Viscusi & Durbin 1995",
    "two-year college": "Kane & Rouse 1995",
    "mothers' hours": "after Angrist & Evans 1998",
    "logit e401k": "after Abadie 2003",
    "Poisson NMES visits": "Deb & Trivedi 1997",
    "Poisson arrests": "after Grogger 1991",
    "birth weight": "after Mullahy 1997",
}
"""Models of the folder, and the papers whose tables and questions they are."""


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """What a published model says on the whole table. terms: its k slopes; z: (k,) of them, without
    privacy.
    """

    model: RealModel
    frame: Frame
    terms: tuple[str, ...]
    z: FloatArray

    @property
    def number(self) -> int:
        """Of slopes that differ from 0."""
        return int(np.sum(np.abs(self.z) > _Z))

    @property
    def again(self) -> float:
        """The share that a new sample is expected to find."""
        z = np.abs(self.z)
        return float(np.mean(ndtr(z[z > _Z] - _Z)))

    def score(self, ends: FloatArray) -> "ParityRun":
        """Of intervals (k, 2) of the slopes, not-a-number where there is none."""
        above, below = ends[:, 0] > 0, ends[:, 1] < 0
        found, up = np.abs(self.z) > _Z, self.z > 0
        same, other = np.where(up, above, below), np.where(up, below, above)
        return ParityRun(same[found], other[found], ~(above | below)[~found])


@dataclass(frozen=True, slots=True, eq=False)
class ParityRun:
    """Of one run. same, reversed: (k,) findings on the same side of 0, and on the other; none: (j,)
    slopes without effect of which no interval leaves 0 out.
    """

    same: np.ndarray
    reversed: np.ndarray
    none: np.ndarray


@dataclass(frozen=True, slots=True)
class ParityShares:
    """Means over runs; none is not-a-number where every slope is a finding."""

    same: float
    reversed: float
    none: float

    @classmethod
    def of(cls, scores: list[ParityRun]) -> "ParityShares":
        told = [score.none for score in scores if len(score.none)]
        return cls(
            float(np.mean([score.same for score in scores])),
            float(np.mean([score.reversed for score in scores])),
            float(np.mean(told)) if told else float("nan"),
        )


def published(folder: Folder) -> Iterator[Findings]:
    """Of each model of SOURCES."""
    for model in folder.models:
        if model.name not in SOURCES:
            continue
        frame = folder.frame(model.table)
        whole = frame.rows(np.arange(frame.n))
        truth = textbook(whole, model.query, frame.n)
        whole.close()
        yield Findings(model, frame, truth.terms[1:], slopes(truth))


def slopes(truth: Textbook) -> FloatArray:
    """(k,) z of all terms but the intercept, which is the first."""
    return np.asarray((truth.coefficients / truth.standard_errors)[1:])


def seeded(model: RealModel, run: int) -> np.random.Generator:
    """The noise of a run."""
    return np.random.default_rng((zlib.crc32(model.name.encode()), run))


def asked(findings: Findings, query, epsilon: float, run: int) -> ParityRun:
    """Of one run of the model in one way."""
    model, frame = findings.model, findings.frame
    with numpy_noise(seeded(model, run), on=True):
        table = frame.rows(np.arange(frame.n))
        result = table.reply(table.plan(query(model), epsilon))
        table.close()
    if result is None:
        return findings.score(np.full((len(findings.z), 2), np.nan))
    return findings.score(np.array(result["confidence_intervals"], float).reshape(-1, 2)[1:])


def _as_published(model: RealModel):
    """The query of least squares or maximum likelihood."""
    if model.linear:
        return replace(model.query, loss="squared")
    return replace(model.query, target="likelihood")


def _robust(model: RealModel):
    """The query as the kind asks it by default."""
    return model.query


WAYS: dict[str, Callable] = {"as published": _as_published, "robust": _robust}


def main() -> None:
    shares: dict[tuple[bool, str, float], list[ParityShares]] = {}
    again: dict[bool, list[float]] = {}
    details: list[str] = []
    columns = [(name, e) for name in WAYS for e in EPSILONS]
    heads = " | ".join(f"{name}, {e:g}" for name, e in columns)
    print(f"| paper | model | n | findings | new sample | {heads} |")
    print("|" + "---|" * (5 + len(columns)))
    for findings in published(read_folder()):
        model, n = findings.model, findings.frame.n
        again.setdefault(n >= LARGE, []).append(findings.again)
        cells, each = [], []
        for name, epsilon in columns:
            runs = [asked(findings, WAYS[name], epsilon, run) for run in range(RUNS)]
            share = ParityShares.of(runs)
            shares.setdefault((n >= LARGE, name, epsilon), []).append(share)
            cells.append(f"{share.same:.2f}")
            each.append(np.mean([score.same for score in runs], axis=0))
        head = f"{SOURCES[model.name]} | {model.name} | {n:,} | {findings.number}"
        print(f"| {head} | {findings.again:.2f} | {' | '.join(cells)} |", flush=True)
        details += _lines(findings, np.array(each))
    if len(EPSILONS) == 1:
        print(*details, sep="\n")
    for large, told in again.items():
        print(f"{_size(large)}, a new sample: {np.mean(told):.3f} over {len(told)} models")
    for (large, name, epsilon), found in shares.items():
        same, other, none = (
            np.nanmean([getattr(share, of) for share in found])
            for of in ("same", "reversed", "none")
        )
        print(
            f"{_size(large)}, {name}, ε = {epsilon:g}: same {same:.3f}, reversed {other:.3f}, "
            f"no effect stays none {none:.3f}"
        )


def _lines(findings: Findings, same: FloatArray) -> list[str]:
    """Of each finding: its z, what a new sample gives, and the shares `same` (columns, k)."""
    found = [(t, z) for t, z in zip(findings.terms, findings.z, strict=True) if abs(z) > _Z]
    return [
        f"| {findings.model.name} | {term} | {z:.1f} | {ndtr(abs(z) - _Z):.2f} | "
        f"{' | '.join(f'{x:.2f}' for x in shares)} |"
        for (term, z), shares in zip(found, same.T, strict=True)
    ]


def _size(large: bool) -> str:
    return f"n ≥ {LARGE:,}" if large else f"n < {LARGE:,}"
