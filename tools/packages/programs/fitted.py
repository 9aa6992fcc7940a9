# SPDX-License-Identifier: Apache-2.0
"""fitted.py URL [ID]: the client fits, or reads what was released under ID, and prints id and
slope.
"""

import json
import os
import sys

import reticent

client = reticent.Client(sys.argv[1], key=os.environ["RETICENT_KEY"])
if len(sys.argv) > 2:
    fit = client.release(sys.argv[2])
else:
    people = client.dataset("people")
    print(people.plan("linear_regression", "y ~ x", epsilon=8.0), file=sys.stderr)
    fit = people.linear_regression("y ~ x", epsilon=8.0)
slope = float(fit.params["x"])
assert abs(slope - 2) < 0.5, slope
assert "x" in str(fit.summary())
print(json.dumps({"id": fit.id, "slope": slope}))
