# SPDX-License-Identifier: Apache-2.0
"""with_synthetic.py URL: what reticent[synthetic] adds."""

import os
import sys

import reticent

people = reticent.Client(sys.argv[1], key=os.environ["RETICENT_KEY"]).dataset("people")
names = ["y", "x", "g"]
tables = people.synthetic(names, epsilon=1.0)
records = tables.records(100)
assert list(records) == names
assert len(records) == 100
