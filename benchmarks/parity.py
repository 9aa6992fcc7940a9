# SPDX-License-Identifier: Apache-2.0
"""Do findings of published models come out the same? A scoreboard over whole real tables.

A finding is a slope of a published model that least squares or maximum likelihood with sandwich
errors calls different from 0 at 5 % on the whole table. It comes out the same where the private
95 % interval is on the same side of 0; a slope without an interval does not. Each run asks the one
model at ε; the table's profile is released at ε = .5 besides. Tables and their columns' bounds: the
folder of `benchmarks.real_tables`.

PARITY_RUNS (25): runs of a model at an ε.
"""

import os
import zlib
from dataclasses import replace

import numpy as np

from benchmarks.real_tables.fast import numpy_noise
from benchmarks.real_tables.models import RealModel, read_folder
from benchmarks.real_tables.textbook import Textbook, textbook

RUNS = int(os.environ.get("PARITY_RUNS", "25"))
EPSILONS = (0.5, 1.0, 3.0)
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


def same(model: RealModel, frame, truth: Textbook, epsilon: float, run: int) -> np.ndarray:
    """(k,) whether each finding comes out the same in one run."""
    rng = np.random.default_rng((zlib.crc32(model.name.encode()), run))
    with numpy_noise(rng, on=True):
        table = frame.rows(np.arange(frame.n))
        result = table.reply(table.plan(_textbooks(model), epsilon))
        table.close()
    z = (truth.coefficients / truth.standard_errors)[1:]
    if result is None:
        return np.zeros(int((np.abs(z) > _Z).sum()), dtype=bool)
    ends = np.array(result["confidence_intervals"], dtype=float).reshape(-1, 2)[1:]
    side = np.where(z > 0, ends[:, 0] > 0, ends[:, 1] < 0)
    return np.asarray(side[np.abs(z) > _Z])


def _textbooks(model: RealModel):
    """The query of least squares or maximum likelihood."""
    if model.linear:
        return replace(model.query, loss="squared")
    return replace(model.query, target="likelihood")


def main() -> None:
    folder = read_folder()
    shares: dict[tuple[bool, float], list[float]] = {}
    print("| paper | model | n | findings | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " |")
    print("|" + "---|" * (4 + len(EPSILONS)))
    for model in folder.models:
        if model.name not in SOURCES:
            continue
        frame = folder.frame(model.table)
        whole = frame.rows(np.arange(frame.n))
        truth = textbook(whole, model.query, frame.n)
        whole.close()
        found = [[same(model, frame, truth, e, k) for k in range(RUNS)] for e in EPSILONS]
        row = [float(np.mean(runs)) for runs in found]
        for epsilon, share in zip(EPSILONS, row, strict=True):
            shares.setdefault((frame.n >= LARGE, epsilon), []).append(share)
        figures = " | ".join(f"{x:.2f}" for x in row)
        head = f"{SOURCES[model.name]} | {model.name} | {frame.n:,} | {found[0][0].size}"
        print(f"| {head} | {figures} |", flush=True)
    for (large, epsilon), each in sorted(shares.items()):
        size = f"n ≥ {LARGE:,}" if large else f"n < {LARGE:,}"
        print(f"{size}, ε = {epsilon:g}: {np.mean(each):.3f} over {len(each)} models", flush=True)
