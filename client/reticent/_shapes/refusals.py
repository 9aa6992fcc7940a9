# SPDX-License-Identifier: Apache-2.0
"""What cannot be answered of private rows, and what to write instead."""

from typing import NoReturn

from reticent._errors import NotPrivate

_ROWS = "is of single records, which stay on the server"
INSTEAD = {
    "resid": f"{_ROWS}: ds.residuals(fit.fit, epsilon=…) releases residuals in bins.",
    "fittedvalues": f"{_ROWS}: predict(frame) takes public values of your choice.",
    "get_influence": f"{_ROWS}; a robust fit (rlm, glm) bounds every record's influence.",
    "outlier_test": f"{_ROWS}; a robust fit (rlm, glm) bounds every record's influence.",
    "get_margeff": "averages over the records: fit.margins(frame) averages over a public frame.",
    "get_robustcov_results": "is not needed: standard errors are robust already.",
    "llf": (
        "is not released. ds.test(formula, hypothesis, test='lr', epsilon=…) is a "
        "likelihood-ratio test."
    ),
    "llnull": (
        "is not released. ds.test(formula, hypothesis, test='lr', epsilon=…) is a "
        "likelihood-ratio test."
    ),
    "llr": (
        "is not released. ds.test(formula, hypothesis, test='lr', epsilon=…) is a "
        "likelihood-ratio test."
    ),
    "llr_pvalue": "is not released. wald_test of all terms is free.",
    "prsquared": (
        "is not released. Of a logit, fit(fit_statistics=True) releases Efron's R² as rsquared."
    ),
    "aic": "is not released. study.select compares least-squares models for nothing.",
    "bic": "is not released. study.select compares least-squares models for nothing.",
    "deviance": "is not released.",
    "compare_lr_test": (
        "needs a question of its own: ds.test(formula, hypothesis, test='lr', epsilon=…)."
    ),
    "compare_f_test": "needs a question of its own: f_test of the larger fit is free.",
    "remove_data": "is not needed: a result has no data.",
}
"""Members of statsmodels' results by what to write in their place."""


def refuse(name: str) -> NoReturn:
    """Raises NotPrivate of a member that is known, AttributeError of another."""
    said = INSTEAD.get(name)
    if said is None:
        raise AttributeError(name)
    raise NotPrivate(f"{name} {said}")
