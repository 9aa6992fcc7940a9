# SPDX-License-Identifier: Apache-2.0
"""with_word.py URL: what reticent[word] adds."""

import os
import sys
from pathlib import Path

import reticent

people = reticent.Client(sys.argv[1], key=os.environ["RETICENT_KEY"]).dataset("people")
reticent.table({"y": people.linear_regression("y ~ x", epsilon=8.0)}).docx("table.docx")
assert Path("table.docx").read_bytes().startswith(b"PK")
