# SPDX-License-Identifier: Apache-2.0
"""with_pandas.py URL: what reticent[pandas] adds."""

import os
import sys

import reticent

people = reticent.Client(sys.argv[1], key=os.environ["RETICENT_KEY"]).dataset("people")
frame = people.linear_regression("y ~ x", epsilon=8.0).to_frame()
assert "x" in frame.index, frame
