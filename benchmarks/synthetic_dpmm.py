# SPDX-License-Identifier: Apache-2.0
"""Synthetic records by dpmm's PrivBayes: `PYTHON synthetic_dpmm.py CODES.csv EPSILON SEED
RECORDS.csv`, run by a Python that has `dpmm` (its numpy is older than ours).

CODES.csv: whole numbers from 0 on. Guarantee: (EPSILON, 1e-6) for one record that is added or
removed.
"""

import sys

import numpy as np
import pandas as pd
from dpmm.models.priv_bayes import PrivBayesGM

DELTA = 1e-6
STEPS = 1000  # of mirror descent; dpmm's default of 5,000 takes five times as long


def main() -> None:
    """From codes to records."""
    codes = pd.read_csv(sys.argv[1]).astype(int)
    model = PrivBayesGM(epsilon=float(sys.argv[2]), delta=DELTA, n_iters=STEPS, n_jobs=1)
    model.set_domain({name: int(codes[name].max()) + 1 for name in codes})
    model.set_random_state(np.random.RandomState(int(sys.argv[3])))
    model.fit(codes)
    model.generate(n_records=len(codes)).to_csv(sys.argv[4], index=False)


if __name__ == "__main__":
    main()
