# SPDX-License-Identifier: Apache-2.0
"""The functions of statsmodels.formula.api, each as the method of a data set that answers it."""

from dataclasses import dataclass
from typing import Any

from reticent._errors import NotPrivate
from reticent._shapes.model import FormulaModel, described
from reticent._shapes.results import FittedModel


def ols(formula: str, data: Any, subset: str | None = None) -> FormulaModel:
    """Least squares: Dataset.ols.

    >>> smf.ols("price ~ np.log(sqft_living) + C(grade)", data=ds).fit(epsilon=1.0).summary()
    """
    return described("ols", formula, data, subset)


def wls(
    formula: str, data: Any, subset: str | None = None, weights: str | None = None
) -> FormulaModel:
    """Weighted least squares. weights: a column's name."""
    return described("ols", formula, data, subset, weights=weights)


def rlm(formula: str, data: Any, subset: str | None = None, M: Any = None) -> FormulaModel:
    """A robust linear model: Dataset.rlm. M: None, HuberT() or TukeyBiweight() of
    statsmodels.robust.norms.
    """
    name = "HuberT" if M is None else type(M).__name__
    losses = {"HuberT": "huber", "TukeyBiweight": "tukey"}
    if name not in losses:
        raise NotPrivate("M is HuberT() or TukeyBiweight().")
    return described("rlm", formula, data, subset, loss=losses[name])


def logit(formula: str, data: Any, subset: str | None = None) -> FormulaModel:
    """Logistic regression by maximum likelihood: Dataset.logit."""
    return described("logit", formula, data, subset)


def probit(formula: str, data: Any, subset: str | None = None) -> FormulaModel:
    """Probit regression by maximum likelihood: Dataset.probit."""
    return described("probit", formula, data, subset)


def poisson(
    formula: str,
    data: Any,
    subset: str | None = None,
    offset: str | None = None,
    exposure: str | None = None,
) -> FormulaModel:
    """Poisson regression by maximum likelihood: Dataset.poisson. offset, exposure: columns'
    names.
    """
    return described("poisson", formula, data, subset, offset=offset, exposure=exposure)


def negativebinomial(
    formula: str,
    data: Any,
    subset: str | None = None,
    offset: str | None = None,
    exposure: str | None = None,
) -> FormulaModel:
    """A negative binomial whose dispersion is estimated: the robust fit of Dataset.glm, as its
    first line says.
    """
    more = {"family": "negative_binomial", "offset": offset, "exposure": exposure}
    return described("glm", formula, data, subset, **more)


def mixedlm(*_: Any, **__: Any) -> FormulaModel:
    """Raises NotPrivate: a random intercept is of a study."""
    raise NotPrivate(
        'Write ds.study(["y", "mean(y)", "x", "mean(x)"], epsilon=…).mixedlm("y ~ x"): a random '
        "intercept of every person, free after one charge. Random slopes are not served."
    )


def gee(
    formula: str,
    groups: Any,
    data: Any,
    subset: str | None = None,
    cov_struct: Any = None,
    family: Any = None,
) -> FormulaModel:
    """Estimating equations with independent rows of a person: the fit of the family, whose errors
    are by person. groups: the person's column, which the data set knows. Raises NotPrivate for
    another structure.
    """
    if type(cov_struct).__name__ not in {"NoneType", "Independence"}:
        raise NotPrivate(
            "Write ds.gee(formula, working_correlation=…, epsilon=…) for exchangeable rows of a "
            "normal response; other structures and families have independent rows only."
        )
    if not isinstance(groups, str):
        raise NotPrivate("groups is the name of the person's column.")
    asked = glm(formula, data, subset, family)
    plain = {"fit_statistics": False} if asked.method == "ols" else {}
    return FormulaModel(asked.data, asked.method, {**asked.fields, **plain})


def mnlogit(*_: Any, **__: Any) -> FormulaModel:
    """Raises NotPrivate: a result of several levels has another shape."""
    raise NotPrivate(
        'Write ds.glm(formula, "multinomial", epsilon=…), whose result has the levels side by side.'
    )


def phreg(
    formula: str, data: Any, status: str | None = None, subset: str | None = None
) -> FormulaModel:
    """Proportional hazards, with a baseline that is constant between cuts:
    Dataset.hazard_regression. status: the column of events.
    """
    if not isinstance(status, str):
        raise NotPrivate('status is the name of the column of events, such as status="died".')
    time, tilde, terms = formula.partition("~")
    if not tilde:
        raise NotPrivate('Write the formula as "time ~ x".')
    return described("hazard_regression", f"Surv({time.strip()}, {status}) ~{terms}", data, subset)


def quantreg(formula: str, data: Any, subset: str | None = None) -> "QuantileFormula":
    """Quantile regression: Dataset.quantile_regression; fit(q=0.5)."""
    asked = described("quantile_regression", formula, data, subset)
    return QuantileFormula(asked.data, asked.method, asked.fields)


@dataclass(frozen=True, slots=True)
class QuantileFormula(FormulaModel):
    """fit(q) asks for the q-quantile."""

    def fit(self, q: float = 0.5, **how: Any) -> FittedModel:
        """As FormulaModel.fit."""
        return FormulaModel.fit(self, tau=q, **how)


def glm(
    formula: str,
    data: Any,
    subset: str | None = None,
    family: Any = None,
    offset: str | None = None,
    exposure: str | None = None,
    freq_weights: Any = None,
    var_weights: Any = None,
) -> FormulaModel:
    """A generalised linear model by maximum likelihood. family: of statsmodels.api.families, or a
    name of Dataset.glm; None: gaussian, which is least squares. offset, exposure, freq_weights,
    var_weights: columns' names.
    """
    weights = freq_weights if freq_weights is not None else var_weights
    method, fields = _family(family)
    more = {**fields, "offset": offset, "exposure": exposure, "weights": weights}
    return described(method, formula, data, subset, **more)


_LINKS = {
    "Logit": "logit",
    "Probit": "probit",
    "CLogLog": "cloglog",
    "Log": "log",
    "Identity": "identity",
}
_USUAL = {
    "Binomial": "Logit",
    "Poisson": "Log",
    "Gamma": "InversePower",
    "NegativeBinomial": "Log",
    "Gaussian": "Identity",
}
_METHODS = {"Gaussian": "ols", "Poisson": "poisson", "Gamma": "gamma", "NegativeBinomial": "negbin"}
_NAMES = {"binomial": "Binomial", "poisson": "Poisson", "gamma": "Gamma", "gaussian": "Gaussian"}


def _family(family: Any) -> tuple[str, dict[str, Any]]:
    """The method and the fields of a family."""
    if family is None:
        return "ols", {}
    if isinstance(family, str):
        name, link = _NAMES.get(family, family), ""
    else:
        family = family() if isinstance(family, type) else family
        name, link = type(family).__name__, type(getattr(family, "link", None)).__name__
    if name not in _USUAL:
        raise NotPrivate(f"The families are {', '.join(_USUAL)}; {name} is none of them.")
    if name == "Binomial":
        if link not in {*_LINKS, ""}:
            raise NotPrivate("The links of a binomial are Logit, Probit, CLogLog and Log.")
        return "logit", {"link": _LINKS.get(link, "logit")}
    if name == "Gaussian" and link not in {"", "Identity"}:
        raise NotPrivate("The gaussian family has the identity link.")
    if name != "Gaussian" and link not in {"", "Log"}:
        raise NotPrivate(
            f"The link of {name} is the logarithm: {name}(link=sm.families.links.Log())."
        )
    more = {"dispersion": float(family.alpha)} if name == "NegativeBinomial" else {}
    return _METHODS[name], more
