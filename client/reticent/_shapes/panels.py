# SPDX-License-Identifier: Apache-2.0
"""linearmodels' entry points."""

import re
from typing import Any, NoReturn

from reticent._errors import NotPrivate
from reticent._shapes.model import FormulaModel, described
from reticent._shapes.results import FittedModel

_ENTITY = re.compile(r"\s*\+\s*EntityEffects\b")
_CLUSTERED = frozenset({None, "robust", "heteroskedastic", "unadjusted", "clustered"})


class PanelOLS:
    """Least squares of persons with several rows each. A model is described by `from_formula` and
    asked by `fit`.
    """

    def __init__(self, *_: Any, **__: Any) -> None:
        raise NotPrivate('Write PanelOLS.from_formula("y ~ x + EntityEffects", data=ds).')

    @staticmethod
    def from_formula(formula: str, data: Any) -> "PanelFormula":
        """EntityEffects: an intercept of every person. Raises NotPrivate, which says what to write.

        >>> PanelOLS.from_formula("wage ~ union + EntityEffects", ds).fit(epsilon=1.0)
        """
        if "TimeEffects" in formula:
            raise NotPrivate(
                "Write TimeEffects as dummies of the period's column, such as C(year)."
            )
        plain = _ENTITY.sub("", formula)
        effects = {"effects": "person"} if plain != formula else {}
        asked = described("ols", plain, data, None, **effects)
        return PanelFormula(asked.data, asked.method, asked.fields)


class PanelFormula(FormulaModel):
    """A model of a panel; errors are by person."""

    __slots__ = ()

    def fit(self, cov_type: str | None = None, **how: Any) -> FittedModel:
        """As FormulaModel.fit; cluster_entity has no effect, as errors are by person always."""
        how.pop("cluster_entity", None)
        if cov_type not in _CLUSTERED:
            raise NotPrivate("Standard errors are by person always: leave cov_type out.")
        return FormulaModel.fit(self, **how)


class IV2SLS:
    """Raises NotPrivate: instruments are of a study."""

    def __init__(self, *_: Any, **__: Any) -> None:
        _of_a_study()

    @staticmethod
    def from_formula(*_: Any, **__: Any) -> NoReturn:
        """Raises NotPrivate."""
        _of_a_study()


def _of_a_study() -> NoReturn:
    raise NotPrivate(
        'Write ds.study(variables, epsilon=…).iv("y ~ x + w | z + w"): two-stage least squares of '
        "any formula, free after one charge."
    )
