# SPDX-License-Identifier: Apache-2.0
"""Logistic regression on Adult, ε = 1: income > 50K ~ age + education_num + hours_per_week + sex.

The worst coefficient's deviation in standard errors, median over 20 runs: from the maximum
likelihood fit, and from the noise-free fit of the recipe's own estimating equation, for goals of
1.5 and 1. Each run has a released profile of its own. Beside it diffprivlib (it needs an old
scikit-learn): BENCH_DIFFPRIVLIB names the Python of an environment that has it, else one is made
for the run; where it cannot be installed, the figures that were stored (6.0 SE / 2.3 SE) are
printed and labelled as such. Needs ../shared/data.
"""

import json
import os
import subprocess
import tempfile
import venv
from pathlib import Path

import numpy as np

from benchmarks.accuracy import BenchTable
from benchmarks.noise_free.glm_robust import fit_glm
from benchmarks.noise_free.glm_target import noise_free_fit
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.domain.steps import Block
from reticent_server.kinds.glm.query import Glm
from reticent_server.numerics.families import Binomial

RUNS, EPSILON = 20, 1.0
ADULT = Path(__file__).parents[1].parent / "shared" / "data" / "adult.data"
STORED = {"stored, from the MLE": 6.0, "stored, from its own target": 2.3}
BOUNDS = {"age": (17, 90), "education_num": (1, 16), "hours_per_week": (1, 99)}


def main() -> None:
    if not ADULT.exists():
        print("no Adult data beside the repository: nothing measured")
        print(json.dumps({"benchmark": "logistic", "measured": False}))
        return
    arrays, columns = adult()
    X = np.column_stack([np.ones(len(arrays["y"])), *(arrays[k] for k in (*BOUNDS, "male"))])
    mle = fit_glm(X, arrays["y"], Binomial())
    ours, factor = reticent(arrays, columns, mle)
    peer, note = diffprivlib(X, arrays["y"], mle)
    print(f"{'':28}from MLE   from own target   (worst coefficient, SE, median of {RUNS})")
    print(f"{'reticent, R2 = ' + format(factor, 'g') + 'q':28}{ours[0]:8.2f}{ours[1]:18.2f}")
    for name, value in peer.items():
        print(f"{'diffprivlib, ' + name:28}{value:8.2f}   {note}")
    figures = {"from_mle": ours[0], "from_own_target": ours[1], "radius_factor": factor}
    print(
        json.dumps(
            {"benchmark": "logistic", "reticent": figures, "diffprivlib": peer, "note": note}
        )
    )


def adult() -> tuple[dict, list[Column]]:
    """The columns as arrays, and their public declaration."""
    with ADULT.open() as file:
        header, *rows = ([c.strip() for c in line.split(",")] for line in file if line.strip())
    names = [name.replace(".", "_").replace("-", "_") for name in header]
    at = dict(zip(names, zip(*rows, strict=True), strict=True))
    arrays = {k: np.array([float(v) for v in at[k]]) for k in BOUNDS}
    arrays["male"] = np.array([float(v == "Male") for v in at["sex"]])
    arrays["y"] = np.array([float(v == ">50K") for v in at[names[-1]]])
    columns = [Column(k, ColumnKind.INTEGER, *map(float, b)) for k, b in BOUNDS.items()]
    return arrays, [*columns, *(Column(k, ColumnKind.BOOLEAN, 0, 1) for k in ("male", "y"))]


def reticent(arrays: dict, columns: list[Column], mle) -> tuple[tuple[float, float], float]:
    """(worst deviation from the MLE, from the own target), and R²/q, through the engine."""
    query = Glm("y ~ age + education_num + hours_per_week + male", "binomial")
    worst = []
    for _ in range(RUNS):
        table = BenchTable(arrays, columns).profiled()
        plan = table.plan(query, EPSILON)
        model = plan.planned
        target = noise_free_fit(model, Block(0, table.n, arrays, {}))
        b = np.array(table.release(plan)["coefficients"])
        table.close()
        gaps = [np.abs(b - fit.coefficients) / fit.standard_errors for fit in (mle, target)]
        worst.append([float(gap.max()) for gap in gaps])
    from_mle, from_target = np.median(worst, axis=0)
    return (float(from_mle), float(from_target)), model.model.radius


def diffprivlib(X: np.ndarray, y: np.ndarray, mle) -> tuple[dict, str]:
    """Worst deviations from the MLE in the same run; the stored figures where it cannot be
    installed.

    public: scaled by the declared bounds, as one must without looking. standardised: by the exact
    means and standard deviations, with the 99 % quantile of the norms as its bound: not private, a
    gift.
    """
    low, high = np.array([*BOUNDS.values(), (0, 1)], dtype=float).T
    middle, half = (low + high) / 2, (high - low) / 2
    centre, scale = X[:, 1:].mean(axis=0), X[:, 1:].std(axis=0)
    norm = float(np.quantile(np.linalg.norm((X[:, 1:] - centre) / scale, axis=1), 0.99))
    settings = {"public": (middle, half, 2.0), "standardised": (centre, scale, norm)}
    with tempfile.TemporaryDirectory() as folder:
        named = os.environ.get("BENCH_DIFFPRIVLIB")
        python = Path(named) if named else installed(Path(folder))
        if python is None:
            return STORED, "(stored figures: diffprivlib could not be installed here)"
        found = {}
        for name, (a, b, data_norm) in settings.items():
            fits = peer_fits(python, (X[:, 1:] - a) / b, y, data_norm)
            if fits is None:
                return STORED, "(stored figures: diffprivlib did not run here)"
            slopes = fits[:, 1:] / b
            whole = np.column_stack([fits[:, 0] - slopes @ a, slopes])
            worst = np.max(np.abs(whole - mle.coefficients) / mle.standard_errors, axis=1)
            found[name] = float(np.median(worst))
    return found, "(same run)"


def installed(folder: Path) -> Path | None:
    """A Python with diffprivlib."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "diffprivlib", "scikit-learn<1.6"]
    done = subprocess.run(install, capture_output=True, check=False)
    return None if done.returncode else python


def peer_fits(python: Path, rows: np.ndarray, y: np.ndarray, norm: float) -> np.ndarray | None:
    """(runs, q) coefficients, intercept first."""
    asked = {"X": rows.tolist(), "y": y.tolist(), "epsilon": EPSILON, "runs": RUNS}
    peer = Path(__file__).with_name("diffprivlib_peer.py")
    done = subprocess.run(
        [str(python), str(peer)],
        input=json.dumps({**asked, "data_norm": norm}),
        capture_output=True,
        text=True,
        check=False,
    )
    return None if done.returncode else np.array(json.loads(done.stdout))


if __name__ == "__main__":
    main()
