# SPDX-License-Identifier: Apache-2.0
"""Models by the names that people know them by: which kind each is, and with which target."""

from collections.abc import Mapping
from typing import Any

_LIKELIHOOD = {"target": "likelihood"}
NAMED: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "ols": ("linear_regression", {"loss": "squared"}),
    "rlm": ("linear_regression", {}),
    "gee": ("linear_regression", {"loss": "squared"}),
    "logit": ("glm", {"family": "binomial", "link": "logit"} | _LIKELIHOOD),
    "probit": ("glm", {"family": "binomial", "link": "probit"} | _LIKELIHOOD),
    "poisson": ("glm", {"family": "poisson"} | _LIKELIHOOD),
    "gamma": ("glm", {"family": "gamma"} | _LIKELIHOOD),
    "negbin": ("glm", {"family": "negative_binomial"} | _LIKELIHOOD),
    "coxph": ("hazard_regression", _LIKELIHOOD),
}
"""Kind and fields by name: of the methods of a data set, and of `plan`, `power`, `ask` and
`submit`.
"""


def fields_of(name: str, more: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The kind of a name, and its fields; what the caller says comes first."""
    kind, own = NAMED[name]
    return kind, {**own, **more}


_LINEAR = 'ols of the 0/1 response with effects="person", a linear probability model'
_QUANTILE = (
    "quantile_regression at a quantile that censoring does not reach, and logit of whether a "
    "record is censored"
)
_MEANS = 'poisson with mean(x) beside x, or ols with effects="person"'
_STUDY = "study, whose mixedlm has random intercepts"
NOT_SERVED: Mapping[str, str] = {
    "clogit": _LINEAR,
    "conditional_logit": _LINEAR,
    "fepois": _MEANS,
    "glmer": f"logit or poisson, whose errors are by person, or {_STUDY}",
    "interval_regression": _QUANTILE,
    "lmer": _STUDY,
    "mice": 'complete cases, or study with missing="indicator"',
    "mixedlm": _STUDY,
    "ppmlhdfe": _MEANS,
    "rdrobust": "discontinuity, with a bandwidth that you name",
    "tobit": _QUANTILE,
}
"""What people look for by name and is not a method of a data set: what to ask instead."""
