"""One good query of every kind, about the small installation's `people`; a new kind is added here."""

from typing import Any

COLUMN = {"column": "y"}
FIELDS: dict[str, dict[str, Any]] = {
    "count": {},
    "mean": COLUMN,
    "sum": COLUMN,
    "histogram": COLUMN | {"bins": [-10, 0, 10]},
    "crosstab": {"columns": ["g", "b"]},
    "quantiles": COLUMN | {"probabilities": [0.9, 0.1]},
    "iqr": COLUMN,
    "median": COLUMN | {"mechanism": "ptr"},
    "m_estimate": COLUMN | {"tuning": 1.5, "base": "cauchy"},
    "depth_median": {"columns": ["x", "y"], "scale": "trimmed", "eta": "private"},
    "location_scale": COLUMN,
    "linear_regression": {"formula": "y ~ x"},
    "glm": {"formula": "b ~ x", "family": "binomial"},
    "subsample_aggregate": {"model": {"kind": "glm", "formula": "b ~ x", "family": "binomial"}},
    "hypothesis_test": {"formula": "y ~ x", "hypothesis": ["x = 0"]},
    "t_test": COLUMN | {"group": "b"},
    "anova": COLUMN | {"group": "g"},
    "mann_whitney": COLUMN | {"group": "b"},
    "kruskal": COLUMN | {"group": "g"},
    "proportion_test": {"column": "b", "group": "g", "levels": ["a", "b"]},
    "correlation": {"columns": ["x", "y"], "method": "kendall"},
    "ks_test": COLUMN | {"law": "normal", "parameters": [1, 2]},
}
