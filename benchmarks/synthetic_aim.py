# SPDX-License-Identifier: Apache-2.0
"""Synthetic records by OpenDP's own AIM: `PYTHON synthetic_aim.py CODES.csv RHO RECORDS.csv`, run
by a Python that has `opendp[mbi]` and `pandas` (its mbi is older than the client's).

CODES.csv: whole numbers from 0 on, every pair of whose columns is the workload. RHO: of zCDP for
one record that is added or removed.
"""

import sys

import opendp.prelude as dp
import polars as pl
from opendp.extras.mbi import AIM

MEGABYTES = 0.5  # of the model: as large as the one that stands beside it (reticent._joint)


def main() -> None:
    """From codes to records."""
    dp.enable_features("contrib")
    codes = pl.read_csv(sys.argv[1])
    keys = {name: list(range(int(codes[name].max()) + 1)) for name in codes.columns}
    context = dp.Context.compositor(
        data=codes.lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=float(sys.argv[2])),
        split_evenly_over=1,
    )
    table = (
        context.query()
        .contingency_table(keys=keys, algorithm=AIM(queries=2, max_size=MEGABYTES))
        .release()
    )
    table.synthesize(codes.height).fill_null(-1).write_csv(sys.argv[3])


if __name__ == "__main__":
    main()
