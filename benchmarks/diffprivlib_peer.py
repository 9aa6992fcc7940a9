# SPDX-License-Identifier: Apache-2.0
"""diffprivlib's logistic regression, run by benchmarks.logistic in a virtual environment of its
own.

Reads JSON {"X": standardised rows, "y": …, "epsilon": …, "runs": …, "data_norm": …} from standard
input, prints a JSON list of coefficients, one (intercept first) for each run.
"""

import json
import sys
import warnings


def main() -> None:
    import numpy as np
    from diffprivlib.models import LogisticRegression

    warnings.simplefilter("ignore")
    asked = json.load(sys.stdin)
    X, y = np.array(asked["X"]), np.array(asked["y"])
    found = []
    for seed in range(asked["runs"]):
        model = LogisticRegression(
            epsilon=asked["epsilon"], data_norm=asked["data_norm"], random_state=seed, max_iter=500
        ).fit(X, y)
        found.append([float(model.intercept_[0]), *map(float, model.coef_[0])])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
