# SPDX-License-Identifier: Apache-2.0
"""What the Gaussian conversion gives each kind: ρ over zCDP's, at the same (ε, δ), where no profile
tells the columns' spread and a fit selects its own.

A JSON object a line: kind, epsilon, `ratio` of ρ, `selections`, their share of it, of the kind's
first example on a table of N (20,000) records that the registry's examples are about.
"""

import json
import os

from reticent_server.domain.facts import DatasetFacts, Policy
from reticent_server.domain.query import Privacy
from reticent_server.kinds import KINDS
from reticent_server.kinds.example import SCHEMA
from reticent_server.pipeline import planning

N = int(os.environ.get("BENCH_GAUSSIAN_N", "20000"))
EPSILONS = (0.5, 1.0, 4.0)
DELTA = 1e-6


def main() -> None:
    policy = Policy(tiers=("unconditional", "conditional"))
    facts = DatasetFacts("d", "d", 1, "v", N, SCHEMA, None, policy)
    for kind in KINDS:
        if not (kind.for_analysts and kind.examples):
            continue
        for epsilon in EPSILONS:
            asked = Privacy(epsilon, DELTA)
            plain, plan = (
                planning.plan(facts, kind.examples[0], asked, gaussian=gaussian)
                for gaussian in (False, True)
            )
            share = sum(part.rho for part in plan.planned.selections) / plan.planned.rho
            line = {"kind": kind.name, "epsilon": epsilon}
            line |= {"ratio": round(plan.planned.rho / plain.planned.rho, 3)}
            print(json.dumps(line | {"selections": round(share, 3)}), flush=True)


if __name__ == "__main__":
    main()
