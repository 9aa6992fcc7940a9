# SPDX-License-Identifier: Apache-2.0
"""What R's pooled studies are compared with: releases of three sites, and what the Python client
makes of them.

    cd tests && python -m support.kinds.r_pooled    writes r/tests/testthat/pooled.json

`sites`: releases. `fits` by formula and weights, `heterogeneity`, `meta` by method, and `protocols`
with their digests. tests/r compares the answers with those of today's client.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from reticent._pooled.meta import MetaAnalysis, meta
from reticent._pooled.protocol import protocol
from reticent._pooled.study import PooledStudy, pool
from reticent_server.kinds.study.kind import Study
from support.client.studies import result_of
from support.kinds.studies import read
from support.seeds import seeded

FIXTURE = Path(__file__).resolve().parents[3] / "r/tests/testthat/pooled.json"
NAMES = ("y", "x", "w")
FORMULAS = ("y ~ x + w", "y ~ x + w + site", "y ~ x * site", "y ~ 0 + x + w")
PAIRS = {"a": [0.1, 0.2], "b": [0.9, 0.3], "c": [0.4, 0.1], "d": [1.3, 0.25]}
AGREED: dict[str, Any] = {
    "protocol": 1,
    "title": 'Größe, "quoted"\n\x01 and é',
    "study": {"variables": ["y", "x", "C(g)"], "main": None},
    "epsilon": 1.0,
    "delta": 1e-6,
    "columns": {
        "y": {"kind": "numeric", "bounds": [-1e-7, 1e21]},
        "x": {"kind": "numeric", "bounds": [-123456.789, 0.1]},
        "g": {"kind": "categorical", "levels": ["b", "a"]},
    },
    "sites": {"north": {}, "south": {"epsilon": 0.5, "without": ["x"]}},
}


def sites() -> dict[str, Any]:
    """The releases' documents, of which two say what clipping may have moved."""
    found = {}
    for k, (name, n) in enumerate({"a": 4000, "b": 900, "c": 2500}.items()):
        rng = seeded(k)
        x, w, e = rng.normal(size=(3, n))
        table = np.column_stack([1 + k + 0.5 * x - 0.3 * w + e, x + k / 2, w])
        result = result_of(table, (0.004, 0.02, 0.006)[k], 40 + k, NAMES)
        result["lost"] = [0.0, 0.01, 0.02, 0.0]
        if k < 2:
            inner = result_of(table, 0.01, 50 + k, NAMES)
            result["narrow"] = {
                "moments": (np.array(inner["moments"]) * 0.99).tolist(),
                "noise": inner["noise"],
                "ratio": 1.3,
                "typical": 0.4,
            }
        found[name] = json.loads(json.dumps(dict(read(Study(NAMES), result).release)))
    return found


def cases(releases: Mapping[str, Any]) -> dict[str, Any]:
    """Today's answers."""
    studies: Any = {name: read_document(document) for name, document in releases.items()}
    pools = {way: pool(studies, weights=way) for way in ("people", "precision")}
    one = pools["people"]
    return {
        "fits": [
            {"weights": way, "formula": formula} | _fit(found, formula)
            for way, found in pools.items()
            for formula in FORMULAS
        ],
        "corr": np.asarray(one.corr().values).tolist(),
        "corr_errors": np.asarray(one.corr().bse).tolist(),
        "pca_noise": float(one.pca().noise),
        "r2": list(one.r2("y ~ x + w")),
        "heterogeneity": {
            term: _meta(found) for term, found in one.heterogeneity("y ~ x + w").items()
        },
        "meta": {
            way: _meta(meta({k: tuple(v) for k, v in PAIRS.items()}, method=way))
            for way in ("fixed", "DL", "PM", "REML")
        },
        "pairs": PAIRS,
        "protocols": [{"text": json.dumps(AGREED), "digest": protocol(AGREED).digest}],
    }


def read_document(document: Any) -> Any:
    from reticent._reading import read as release

    return release(document)


def _fit(pooled: PooledStudy, formula: str) -> dict[str, Any]:
    fit = pooled.ols(formula)
    return {
        "terms": list(fit.names),
        "coef": np.asarray(fit.params).tolist(),
        "bse": np.asarray(fit.bse).tolist(),
        "privacy_bse": np.asarray(fit.privacy_bse).tolist(),
        "gate": float(fit.result["gate"]),
    }


def _meta(found: MetaAnalysis) -> dict[str, float]:
    low, high = found.conf_int()
    return {
        "estimate": found.estimate,
        "std.error": found.se,
        "tau2": found.tau2,
        "Q": found.Q,
        "I2": found.I2,
        "p_value_Q": found.pvalue_Q,
        "low": low,
        "high": high,
    }


if __name__ == "__main__":
    releases = sites()
    document = {"sites": releases} | cases(releases)
    FIXTURE.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
