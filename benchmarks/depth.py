# SPDX-License-Identifier: Apache-2.0
"""The depth median beside other centres, on the two laws of Figure 1 of the paper on private depth
medians.

Records are N(0, I), or 25 % of them have mean (5, …, 5); the centre sought is 0. Errors are root
mean squares over tables and coordinates. Private centres spend (ε, 10⁻⁶): coordinate-wise medians
by the exponential mechanism at ε_j = √(8ρ/d), a mean of records clipped to length 10√d by one noisy
sum, depth medians with three scales. Public bounds are ±50, there is no profile. Not private: the
depth median with the median absolute deviation (a linear program over the same directions), the
mean.

DEPTH_RUNS, DEPTH_SIZES, DEPTH_DIMENSIONS and DEPTH_EPSILONS make it smaller, as in
DEPTH_SIZES=10000,20000. Cells are kept in the file of lines DEPTH_CELLS, where it is given, and
those found there are not run again. `python -m benchmarks.depth release SCALE` makes one release,
and prints its seconds and peak memory.
"""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, RHO_UNITS, PrivacyCost
from reticent_server.domain.private import Private
from reticent_server.domain.steps import VectorSum
from reticent_server.kinds.depth_median.query import DepthMedian
from reticent_server.kinds.median.kind import Median
from reticent_server.kinds.registry import plan as plan_kind
from reticent_server.mechanisms import _sampler, depth_draw, depth_proposals, registry
from reticent_server.numerics.depth_certificate import start_of
from reticent_server.numerics.minimax import Program, smallest_maximum
from support.kinds.recipes import answer, block_of, facts_of, numeric


def numbers(name, default):
    """Numbers with commas between, of an environment variable."""
    return tuple(float(v) for v in os.environ.get(name, default).split(","))


RUNS = int(os.environ.get("DEPTH_RUNS", "8"))
SIZES = tuple(map(int, numbers("DEPTH_SIZES", "10000,100000")))
DIMENSIONS = tuple(map(int, numbers("DEPTH_DIMENSIONS", "2,3,5,8")))
EPSILONS = numbers("DEPTH_EPSILONS", "1,4")
DELTA, BOUND, FAR, FIRST_SEED = 1e-6, 50.0, 5.0, 90_000
CELLS = os.environ.get("DEPTH_CELLS")
SCALES = ("iqr", "mad", "trimmed")
LAWS = {"normal": 0.0, "25 % contaminated": 0.25}
LABELS = {
    "mean": "mean, not private",
    "depth": "depth median, not private",
    "clipped mean": "clipped mean",
    "medians": "coordinate-wise medians",
    "iqr": "depth median, iqr",
    "mad": "depth median, mad",
    "trimmed": "depth median, trimmed",
}


def sample(law, n, d, seed):
    """(d, n) records."""
    rng = np.random.default_rng([FIRST_SEED, n, d, seed])
    x = rng.normal(size=(d, n))
    x[:, : int(LAWS[law] * n)] += FAR
    return x


def asked(x, query, epsilon):
    """The result of one release, or None."""
    columns = tuple(numeric(f"x{j}", -BOUND, BOUND) for j in range(len(x)))
    offer = PrivacyCost(int(epsilon * EPSILON_UNITS), int(DELTA * DELTA_UNITS), 10**12)
    plan = plan_kind(facts_of(x.shape[1], columns), query, offer)
    return answer(plan, block_of(**{f"x{j}": row for j, row in enumerate(x)}))


def depth_median(x, scale, epsilon):
    found = asked(x, DepthMedian(tuple(f"x{j}" for j in range(len(x))), scale), epsilon)
    return None if found is None else np.array(found["point"])


def medians(x, epsilon):
    """d medians for ρ in all."""
    each = (8 * rho_units(epsilon, DELTA) / RHO_UNITS / len(x)) ** 0.5
    return np.array([asked(x, Median(f"x{j}"), each)["value"] for j in range(len(x))])


def clipped_mean(x, epsilon):
    part = VectorSum(len(x), 10.0 * len(x) ** 0.5, rho_units(epsilon, DELTA))
    return registry.release(part, Private(registry.encode(part, x))).values / x.shape[1]


def projections_of(x):
    """The measured projections of the release's own directions, in units of the data."""
    part = depth_part(x, "mad")
    found = depth_draw.measure(part, depth_draw.whole_numbers(part, x))
    return part, found


def depth_part(x, scale):
    columns = tuple(numeric(f"x{j}", -BOUND, BOUND) for j in range(len(x)))
    offer = PrivacyCost(4 * EPSILON_UNITS, int(DELTA * DELTA_UNITS), 10**12)
    query = DepthMedian(tuple(c.name for c in columns), scale)
    return plan_kind(facts_of(x.shape[1], columns), query, offer).part


def plain_depth_median(x):
    """argmin of the outlyingness."""
    part, found = projections_of(x)
    U = np.array(part.directions)
    best = smallest_maximum(Program(U, found.location, found.location, found.scale), start_of(U))
    unit = part.lattices[0].step / found.denominator
    return np.array([unit * float(v) for v in best.point])


def acceptance(x, scale, eta):
    """The share of proposals that a draw keeps."""
    part = depth_part(x, scale)
    found = depth_draw.measure(part, depth_draw.whole_numbers(part, x))
    law = depth_draw.law(np.array(part.directions), found, eta)
    words = _sampler.words((len(x) + 2) * 20_000).reshape(-1, 20_000)
    return float(depth_proposals.possible(law, words).mean())


def rms(points):
    """Over tables and coordinates; None without a reply."""
    kept = [p for p in points if p is not None]
    return float(np.sqrt(np.mean(np.square(kept)))) if kept else None


def kept_cells():
    """Cells of earlier runs with the same tables and ε, by law, size and dimension."""
    lines = Path(CELLS).read_text("utf-8").splitlines() if CELLS and Path(CELLS).exists() else []
    cells = [json.loads(line) for line in lines]
    same = [c for c in cells if (c["runs"], tuple(c["epsilons"])) == (RUNS, EPSILONS)]
    return {(c["law"], c["n"], c["d"]): c for c in same}


def cell(law, n, d):
    """The cell, kept from an earlier run or computed."""
    found = kept_cells().get((law, n, d))
    if found is None:
        found = computed(law, n, d) | {"runs": RUNS, "epsilons": EPSILONS}
        if CELLS:
            with Path(CELLS).open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(found) + "\n")
    print_row(found)
    return found


def computed(law, n, d):
    """Errors of one law, size and dimension, by method; private ones for each ε."""
    samples = [sample(law, n, d, k) for k in range(RUNS)]
    found = {"law": law, "n": n, "d": d}
    found["mean"] = rms([x.mean(axis=1) for x in samples])
    found["depth"] = rms([plain_depth_median(x) for x in samples])
    found["clipped mean"] = [rms([clipped_mean(x, e) for x in samples]) for e in EPSILONS]
    found["medians"] = [rms([medians(x, e) for x in samples]) for e in EPSILONS]
    for scale in SCALES:
        points = [[depth_median(x, scale, e) for x in samples] for e in EPSILONS]
        found[scale] = [rms(some) for some in points]
        found[f"{scale}, replies"] = [sum(p is not None for p in some) for some in points]
    return found


def print_row(row) -> None:
    values = [
        [row[name]] * len(EPSILONS) if name in ("mean", "depth") else row[name] for name in LABELS
    ]
    for k, epsilon in enumerate(EPSILONS):
        shown = "".join("       –" if v[k] is None else f"{v[k]:8.4f}" for v in values)
        replies = "/".join(str(row[f"{scale}, replies"][k]) for scale in SCALES)
        print(f"{row['law']:18}{row['n']:7}{row['d']:3}{epsilon:5g}{shown}  {replies}", flush=True)


def plot(rows) -> None:
    """Error against the dimension: a panel for each law and size, at each ε."""
    from benchmarks.figures import panels, save

    for k, epsilon in enumerate(EPSILONS):
        figure, axes = panels(len(LAWS), len(SIZES))
        for line, law in zip(axes, LAWS, strict=True):
            for axis, n in zip(line, SIZES, strict=True):
                cells = [r for r in rows if (r["law"], r["n"]) == (law, n)]
                for name, label in LABELS.items():
                    draw(axis, cells, name, label, k)
                axis.set_title(f"{law}, n = {n:,}", fontsize=10)
            line[0].set_ylabel("root mean squared error")
        for axis in axes[-1]:
            axis.set_xlabel("dimension d")
        save(figure, axes, f"depth-epsilon-{epsilon:g}", columns=max(1, 2 * len(SIZES) - 1))


def draw(axis, cells, name, label, k) -> None:
    plain = name in ("mean", "depth")
    pairs = [(c["d"], c[name] if plain else c[name][k]) for c in cells]
    pairs = [(d, v) for d, v in pairs if v is not None]
    style = {"linestyle": "--"} if plain else {"marker": "o"}
    axis.semilogy([d for d, _ in pairs], [v for _, v in pairs], label=label, **style)


def release(scale) -> None:
    """One release at d = 5 with 500 directions and the largest size."""
    x = sample("normal", SIZES[-1], 5, 0)
    before = time.process_time()
    passed = depth_median(x, scale, 4.0) is not None
    seconds = time.process_time() - before
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"replied": passed, "cpu_seconds": seconds, "peak_mb": megabytes}))


def released_apart(scale):
    """`release` in a process of one thread."""
    command = [sys.executable, "-m", "benchmarks.depth", "release", scale]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main() -> None:
    print(f"{'':25}{'d':>3}{'ε':>5}" + "".join(f"{name[:7]:>8}" for name in LABELS), " replies")
    rows = [cell(law, n, d) for n in SIZES for law in LAWS for d in DIMENSIONS]
    plot(rows)
    kept = {}
    for d in DIMENSIONS:
        x = sample("normal", SIZES[0], d, 0)
        eta = {scale: depth_part(x, scale).etas[0] for scale in SCALES}
        kept[d] = {scale: acceptance(x, scale, eta[scale]) for scale in SCALES}
    one = {scale: released_apart(scale) for scale in SCALES}
    print("share of proposals kept, normal:", kept)
    print(f"one release, n = {SIZES[-1]}, d = 5, 500 directions:", one)
    result = {"benchmark": "depth", "runs": RUNS, "epsilons": EPSILONS, "errors": rows}
    print(json.dumps(result | {"kept": kept, "release": one}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["release"]:
        release(sys.argv[2])
    else:
        main()
