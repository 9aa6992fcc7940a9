# SPDX-License-Identifier: Apache-2.0
"""with_server.py URL: what reticent[server] adds, an analyst's own answers about a synthetic
table.
"""

import os
import sys

import reticent

twin = reticent.Client(sys.argv[1], key=os.environ["RETICENT_KEY"]).dataset("people").twin()
assert "x" in str(twin.linear_regression("y ~ x", epsilon=8.0).summary())
