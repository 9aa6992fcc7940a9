# SPDX-License-Identifier: Apache-2.0
"""statsmodels.formula.api over a data set in place of a data frame: a script changes its import and
its data.

    import reticent.statsmodels.formula.api as smf
    ds = reticent.Client(url).dataset("houses").budgeted(ci_ratio=1.5, epsilon=1.0)
    smf.ols("price ~ np.log(sqft_living) + C(grade)", data=ds).fit().summary()

`fit()` asks the server and is charged, each time; what it may cost is said by `fit(epsilon=…)`,
`fit(ci_ratio=…)` or once by `Dataset.budgeted`. Standard errors are robust to heteroscedasticity
always. What a private fit cannot answer raises NotPrivate, which says what to write.
"""

from reticent._shapes.model import FormulaModel
from reticent._shapes.statsmodels import (
    gee,
    glm,
    logit,
    mixedlm,
    mnlogit,
    negativebinomial,
    ols,
    phreg,
    poisson,
    probit,
    quantreg,
    rlm,
    wls,
)

__all__ = [
    "FormulaModel",
    "gee",
    "glm",
    "logit",
    "mixedlm",
    "mnlogit",
    "negativebinomial",
    "ols",
    "phreg",
    "poisson",
    "probit",
    "quantreg",
    "rlm",
    "wls",
]
