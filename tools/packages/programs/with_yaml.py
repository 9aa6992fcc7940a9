# SPDX-License-Identifier: Apache-2.0
"""with_yaml.py URL: what reticent[yaml] adds."""

import os
import sys
from pathlib import Path

import reticent

BUNDLE = """\
title: People
dataset: people
queries:
  records: {kind: count, epsilon: 1.0}
"""
Path("bundle.yaml").write_text(BUNDLE)
people = reticent.Client(sys.argv[1], key=os.environ["RETICENT_KEY"]).dataset("people")
archive = reticent.bundle("bundle.yaml").run(people, "results", confirm=True)
assert str(archive["records"].summary())
