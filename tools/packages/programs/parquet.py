# SPDX-License-Identifier: Apache-2.0
"""parquet.py FOLDER: people.csv of that folder as two Parquet files in FOLDER/parts."""

import sys
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet

folder = Path(sys.argv[1])
table = pyarrow.csv.read_csv(folder / "people.csv")
(folder / "parts").mkdir()
half = table.num_rows // 2
for number, part in enumerate((table[:half], table[half:])):
    pyarrow.parquet.write_table(part, folder / "parts" / f"{number}.parquet")
