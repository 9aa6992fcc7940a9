# SPDX-License-Identifier: Apache-2.0
"""pyfixest's entry points: a formula with fixed effects behind a bar, answered at once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reticent import _optional
from reticent._errors import NotPrivate
from reticent._shapes.model import described
from reticent._shapes.results import FittedModel
from reticent.results.design import Frame

_SEVERAL = re.compile(r"\b(?:sw0?|csw0?|mvsw)\(")
_ERRORS = frozenset({"iid", "hetero", "HC1", "HC2", "HC3"})


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class FixedEffectsFit:
    """A fit with pyfixest's methods. model: with statsmodels' members; model.fit: the release.
    Needs pandas.
    """

    model: FittedModel

    def coef(self) -> Any:
        """(p,) a Series."""
        return self.model.params

    def se(self) -> Any:
        """(p,) standard errors of sampling and privacy noise."""
        return self.model.bse

    def tstat(self) -> Any:
        """(p,)"""
        return self.model.tvalues

    def pvalue(self) -> Any:
        """(p,)"""
        return self.model.pvalues

    def confint(self, alpha: float = 0.05) -> Any:
        """(p, 2) a frame."""
        return self.model.conf_int(alpha)

    def tidy(self, alpha: float = 0.05) -> Any:
        """A frame with a row for each coefficient."""
        ends = self.confint(alpha)
        columns = {
            "Estimate": self.coef(),
            "Std. Error": self.se(),
            "t value": self.tstat(),
            "Pr(>|t|)": self.pvalue(),
            f"{100 * alpha / 2:g}%": ends[0],
            f"{100 * (1 - alpha / 2):g}%": ends[1],
        }
        return _optional.pandas().DataFrame(columns).rename_axis("Coefficient")

    def predict(self, newdata: Frame | None = None) -> Any:
        """(n,) predictions of a public frame; not of a fit with person effects, which has no
        level.
        """
        return self.model.predict(newdata)

    def summary(self) -> None:
        """Prints the release's summary, whose first line says what is estimated."""
        print(self.model.summary())  # noqa: T201 - as pyfixest does

    def __repr__(self) -> str:
        return repr(self.model)


def feols(
    fml: str,
    data: Any,
    vcov: Any = None,
    weights: str | None = None,
    subset: str | None = None,
    **spending: Any,
) -> FixedEffectsFit:
    """Least squares with fixed effects: Dataset.ols, which is asked at once and charged. spending:
    epsilon, ci_ratio and so on, unless the data set is `budgeted`. Raises NotPrivate, which says
    what to write.

    >>> feols("price ~ grade | waterfront", ds, epsilon=1.0).coef()["grade"]
    """
    return _fixed_effects("ols", fml, data, vcov, weights, subset, spending)


def fepois(
    fml: str,
    data: Any,
    vcov: Any = None,
    weights: str | None = None,
    subset: str | None = None,
    **spending: Any,
) -> FixedEffectsFit:
    """Poisson regression with fixed effects as dummies: Dataset.poisson. As feols."""
    return _fixed_effects("poisson", fml, data, vcov, weights, subset, spending)


def _fixed_effects(
    method: str,
    fml: str,
    data: Any,
    vcov: Any,
    weights: str | None,
    subset: str | None,
    spending: Mapping[str, Any],
) -> FixedEffectsFit:
    formula, *bars = (part.strip() for part in fml.split("|"))
    if len(bars) > 1 or any("~" in bar for bar in bars):
        raise NotPrivate(
            'Instruments are of a study: ds.study(variables, epsilon=…).iv("y ~ x + w | z + w"), '
            "free after the charge."
        )
    if _SEVERAL.search(fml):
        raise NotPrivate(
            "Several models of one call are several charges: write them one by one, or ask one "
            "study, whose formulas are free."
        )
    model = described(method, formula, data, subset, weights=weights)
    unit = data._document["unit"]["column"]  # noqa: SLF001 - the same package
    _check_errors(vcov, unit)
    named = (name.strip() for bar in bars for name in bar.split("+"))
    columns = [name for name in named if name not in {"", "0"}]
    own = unit in columns and unit is not None
    if own and method != "ols":
        raise NotPrivate("Person effects are of least squares and robust linear models only.")
    dummies = "".join(f" + C({name})" for name in columns if name != unit)
    effects = {"effects": "person"} if own else {}
    fields = {**model.fields, "formula": model.formula + dummies, **effects}
    asked = type(model)(model.data, model.method, fields)
    return FixedEffectsFit(asked.fit(**spending))


def _check_errors(vcov: Any, unit: str | None) -> None:
    """Errors are robust always, and by person where the unit is a person."""
    names = set(vcov.values()) if isinstance(vcov, Mapping) else {vcov}
    if not names <= {None, *_ERRORS, unit}:
        raise NotPrivate(
            "Standard errors are robust to heteroscedasticity, and by person where the data "
            "set's unit is a person: leave vcov out."
        )
