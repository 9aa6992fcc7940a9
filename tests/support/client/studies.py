# SPDX-License-Identifier: Apache-2.0
"""Results of studies with noise whose law is known."""

from typing import Any

import numpy as np

from support.seeds import seeded

NAMES = ("log(y)", "x", "I(x**2)", "w", "z1", "z2", "g[b]", "g[c]", "g[b]:x", "g[c]:x")


def result_of(table: Any, sd: float = 0.0, seed: int = 0, names: Any = NAMES) -> dict[Any, Any]:
    """A study's result with noise of sd `sd` in standardised columns, relative to 1 for each
    column's mean square.
    """
    n, q = len(table), len(names) + 1
    Z = np.column_stack([np.ones(n), table])
    centres = np.append(0.0, np.round(table.mean(axis=0), 1))
    scales = np.append(1.0, np.maximum(np.round(table.std(axis=0), 2), 0.1))
    D = np.diag(scales)
    D[1:, 0] = centres[1:]
    rng = seeded(seed)
    E = np.triu(rng.normal(size=(q, q)), 1) / np.sqrt(2) * sd
    E = E + E.T + np.diag(rng.normal(size=q)) * sd
    C = np.eye(q) + 0.2 * np.triu(np.ones((q, q)), 1)
    return {
        "terms": ["Intercept", *names],
        "variables": {"x": ["x"], "g": ["g[b]", "g[c]"]},
        "centres": centres.tolist(),
        "scales": scales.tolist(),
        "dummies": [False, *(name in {"g[b]", "g[c]"} for name in names)],
        "n": n,
        "shares": {},
        "warnings": [],
        "moments": (Z.T @ Z / n + D @ C.T @ E @ C @ D.T).tolist(),
        "noise": {"sd": sd, "root": (C @ D.T).tolist()},
        "clipped": {"share": 0.001, "standard_error": 0.002, "excess": 0.0},
        "radius": 50.0,
    }
