# SPDX-License-Identifier: Apache-2.0
"""A model that was described and not asked yet, as statsmodels has it: `fit` asks."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reticent._dataset import Dataset
from reticent._errors import InvalidQuery, NotPrivate
from reticent._release import NoReply, Release
from reticent._shapes.formulas import of_patsy
from reticent._shapes.results import FittedModel
from reticent.kinds.quantile_regression import QuantileRegressionResults

_NO_INTERCEPT = re.compile(r"[~+]\s*0(?![\w.*:])|-\s*1(?![\w.*:])")
"""Outside of brackets; R² is of a fit with an intercept."""
_OF_THE_SOLVER = frozenset({"disp", "maxiter", "method", "start_params", "tol", "full_output"})
"""Settings of an optimiser: the server's steps are planned, and its target is the same."""
_ROBUST = frozenset({"nonrobust", "HC0", "HC1", "HC2", "HC3"})
_COVARIANCE = (
    "Standard errors are robust to heteroscedasticity always; they are by person where the data "
    "set's unit is a person with several rows. "
    'Leave cov_type out, or name a public column: cov_type="cluster", cov_kwds={"groups": "state"}.'
)


@dataclass(frozen=True, slots=True)
class FormulaModel:
    """method: of a data set, with its fields. data: what is asked."""

    data: Dataset
    method: str
    fields: Mapping[str, Any]

    @property
    def formula(self) -> str:
        """As it is sent."""
        return str(self.fields["formula"])

    def fit(self, **how: Any) -> FittedModel:
        """Asks, which is charged: each time. how: epsilon, delta, ci_ratio, half_width, confirm,
        dry_run and fields of the method (`fit_statistics`, `confidence_level` …); settings of an
        optimiser have no effect. cov_type: the heteroscedasticity-robust ones, or "cluster" with
        cov_kwds={"groups": the name of a column, or of two}. Raises NotPrivate, and what the method
        raises.

        >>> smf.ols("price ~ grade", data=ds).fit(epsilon=1.0).params["grade"]
        """
        clusters = _clusters(how.pop("cov_type", None), how.pop("cov_kwds", None))
        asked = {k: v for k, v in how.items() if k not in _OF_THE_SOLVER} | clusters
        given = {**self.fields, **asked}
        answer = getattr(self.data, self.method)(**_asked_fields(self.method, given))
        return fitted(answer)

    def fit_regularized(self, **_: Any) -> FittedModel:
        """Raises NotPrivate: a penalty is a field of the fit."""
        raise NotPrivate(
            "Write fit(ridge=λ) of ols or rlm; a lasso is of a study: ds.study(variables, "
            "epsilon=…).lasso(formula)."
        )


def _asked_fields(method: str, given: dict[str, Any]) -> dict[str, Any]:
    """With R² where a plain least-squares fit with an intercept is asked for, as scripts read it; a
    tenth of the budget.
    """
    further = {"weights", "by", "effects", "ridge", "tuning", "cluster"}
    plain = method == "ols" and not given.keys() & further
    plain = plain and not _NO_INTERCEPT.search(_outermost(str(given["formula"])))
    return {"fit_statistics": True} | given if plain else given


def _outermost(formula: str) -> str:
    """The formula without what stands in brackets."""
    while (inner := re.sub(r"\([^()]*\)", "", formula)) != formula:
        formula = inner
    return formula


def fitted(answer: Release) -> FittedModel:
    """The answer in statsmodels' shape. Raises NotPrivate where there was No Reply."""
    if isinstance(answer, NoReply):
        raise NotPrivate("The server gave No Reply, which was charged; ask with a larger epsilon.")
    if isinstance(answer, QuantileRegressionResults):
        return FittedModel(answer.fit)
    return FittedModel(answer)  # type: ignore[arg-type]


def described(
    method: str, formula: str, data: Any, subset: Any = None, **fields: Any
) -> FormulaModel:
    """A model of a data set. subset: a condition as a text. Raises NotPrivate, InvalidQuery."""
    if not isinstance(data, Dataset):
        raise InvalidQuery(
            "data is a data set of a server, from reticent.Client(url).dataset(name). A data "
            "frame is statsmodels' own: import "
            "statsmodels.formula.api for it."
        )
    if subset is not None and not isinstance(subset, str):
        raise NotPrivate('subset is a condition as a text, such as subset="grade >= 7".')
    given = {name: value for name, value in fields.items() if value is not None}
    for name in given.keys() & {"weights", "offset", "exposure"}:
        if not isinstance(given[name], str):
            raise NotPrivate(f'{name} is the name of a column, such as {name}="w".')
    where = {} if subset is None else {"where": subset}
    return FormulaModel(data, method, {"formula": of_patsy(formula), **where, **given})


def _clusters(kind: Any, more: Any) -> dict[str, Any]:
    """The field `cluster` of statsmodels' cov_type and cov_kwds. Raises NotPrivate."""
    groups = more.get("groups") if isinstance(more, Mapping) else None
    if kind == "cluster" and isinstance(groups, str | list | tuple):
        return {"cluster": groups}
    if (kind is not None and kind not in _ROBUST) or more:
        raise NotPrivate(_COVARIANCE)
    return {}
