# SPDX-License-Identifier: Apache-2.0
"""Cox's coefficients beside those of FDPCox, on the same simulated tables at the same (ε, δ).

FDPCox is the R code of Hung & Yu (2025), arXiv 2508.19640 (one server: `cdp_cox`, noisy gradient
descent), with the settings of its own experiments: uniform covariates in the unit ball, β =
(0, .5, .8), exponential times and censoring (rate .3), δ = .001. It needs the radius of β and of
the covariates, and gives coefficients without intervals. Here covariates have declared bounds, and
a profile. Mean squared distances from the true β, as in its figures, and from Cox's own estimate.

    python -m benchmarks.fdpcox DIR     DIR: a clone of github.com/EKHung/FDPCox; FDPCOX_TABLES (8),
                                        FDPCOX_N (20000), FDPCOX_EPSILONS (1,4)
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.hazards import HazardTable, cox, facts_of_table
from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.cost import PrivacyCost
from reticent_server.kinds.hazard_regression.kind import KIND, HazardRegression
from support.fits.regressions import drive, whole

DELTA = 1e-3  # of FDPCox's experiments
BETA = np.array([0.0, 0.5, 0.8])
CENSORING = 0.3
FARTHEST = 1 / np.sqrt(3)  # of a covariate: the corners of the cube are in the unit ball
UNTIL = 20.0  # the declared bound of the time: one person in a million and less is followed longer
TABLE = HazardTable(
    "", "t", "e", UNTIL, {f"x{j}": (-float(FARTHEST), float(FARTHEST)) for j in range(3)}
)
PEER = """\
a <- commandArgs(TRUE)
for (f in c("helper_functions.R", "main_functions.R")) source(file.path(a[1], "R", f))
set.seed(as.integer(a[4]))
obs <- as.matrix(read.csv(a[2], header = FALSE))
cat(cdp_cox(obs, as.numeric(a[3]), delta = 0.001))
"""


def simulated(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """A table of FDPCox's design."""
    X = rng.uniform(-FARTHEST, FARTHEST, size=(n, 3))
    dies, leaves = rng.exponential(size=n) / np.exp(X @ BETA), rng.exponential(size=n) / CENSORING
    found = {"t": np.minimum(np.minimum(dies, leaves), UNTIL), "e": (dies < leaves).astype(float)}
    return found | {f"x{j}": np.ascontiguousarray(X[:, j]) for j in range(3)}


def theirs(folder: Path, table: dict[str, np.ndarray], epsilon: float, seed: int) -> np.ndarray:
    """β of FDPCox."""
    with tempfile.TemporaryDirectory() as made:
        script, rows = Path(made) / "peer.R", Path(made) / "rows.csv"
        script.write_text(PEER)
        np.savetxt(rows, np.column_stack(list(table.values())), delimiter=",")
        command = ["Rscript", str(script), str(folder), str(rows), str(epsilon), str(seed)]
        told = subprocess.run(command, capture_output=True, text=True, check=True)
    return np.array(told.stdout.split(), dtype=float)


def ours(table: dict[str, np.ndarray], epsilon: float) -> np.ndarray:
    query = HazardRegression("Surv(t, e) ~ x0 + x1 + x2", target="likelihood")
    plan = KIND.plan(
        facts_of_table(table, TABLE), query, PrivacyCost(0, 0, rho_units(epsilon, DELTA))
    )
    return np.array(drive(plan.run(), whole(table)).result["coefficients"])


def main(arguments: Sequence[str] = ()) -> None:
    """Prints the table."""
    (folder,) = arguments
    n, tables = (
        int(os.environ.get(name, said))
        for name, said in (("FDPCOX_N", "20000"), ("FDPCOX_TABLES", "8"))
    )
    head = ("n", "ε", "tables", "from β: here", "FDPCox", "Cox", "from Cox's: here", "FDPCox")
    for line in (head, ("---",) * len(head)):
        print("| " + " | ".join(line) + " |", flush=True)
    for epsilon in map(float, os.environ.get("FDPCOX_EPSILONS", "1,4").split(",")):
        rng, found = np.random.default_rng(1), []
        for seed in range(tables):
            table = simulated(rng, n)
            X = np.column_stack([table[name] for name in TABLE.terms])
            exact, _ = cox(X, table["t"], table["e"])
            both = (ours(table, epsilon), theirs(Path(folder), table, epsilon, seed))
            far = [np.sum((b - BETA) ** 2) for b in (*both, exact)]
            found.append([*far, *(np.sum((b - exact) ** 2) for b in both)])
        said = [f"{x:.5f}" for x in np.mean(found, axis=0)]
        print("| " + " | ".join((f"{n:,}", f"{epsilon:g}", str(tables), *said)) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
