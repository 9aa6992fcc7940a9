# SPDX-License-Identifier: Apache-2.0
"""A released study: every linear analysis of its columns is made here, and costs nothing more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
from scipy.special import ndtri

from reticent import _optional
from reticent._errors import InvalidFormula
from reticent._release import Release
from reticent._study.agreement import AgreementEstimates, intraclass, limits
from reticent._study.components import Components, Factors, components, factors
from reticent._study.correlations import (
    Correlations,
    PairwiseCorrelation,
    correlation,
    correlations,
)
from reticent._study.fit import StudyFit, document, fit_result
from reticent._study.formula import Columns, Specification, unsaid_indicators
from reticent._study.instruments import InstrumentalFit, instrumental
from reticent._study.lasso import LassoPath, lasso_path
from reticent._study.mediation import Mediation, mediation
from reticent._study.mixed import MixedFit, mixed
from reticent._study.model import model, model_of
from reticent._study.moments import FloatArray, Moments
from reticent._study.path_text import path_model
from reticent._study.reliability import Reliability, reliability
from reticent._study.robustness import SpecificationCurve, varied
from reticent._study.selection import Selection, ranked, simultaneous
from reticent._study.structural import StructuralFit, structural
from reticent._study.twin import twin
from reticent._text import Text, number

ESTIMAND = "Least squares, with records beyond the study's radius downweighted."
ROWS_ALIKE = (
    " Standard errors are as large as the likeness of a person's rows can make them; those of "
    "the declared formula are by "
    "person."
)
WITHIN = " All columns are deviations from the person's means (person effects)."
ANALYSES = (
    "Free from here on: ols, ridge, lasso, iv, corr, partial_corr, pca, factor, mediation, "
    "robustness, select, "
    "r2, sem, reliability, icc, bland_altman, mixedlm, twin."
)
WHOLE = (
    "Structural models, reliability and agreement are about persons, not about deviations from "
    "their means: ask a study without effects."
)
_SHOWN = 10
"""Subsets that a selection lists."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Study(Release):
    """Noisy second moments of some columns. Analyses are free; intervals count sampling and privacy
    noise.

    >>> study = ds.study(["price", "sqft_living", "grade", "bedrooms"], epsilon=4.0)
    >>> study.ols("price ~ sqft_living + grade").summary()
    >>> study.corr(); study.robustness("price ~ grade", ["+ sqft_living", "+ bedrooms"]).plot()

    With `by` in the question every level has a study of its own: `study["f"]`.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, without the intercept."""
        return tuple(map(str, self.result["terms"][1:]))

    @property
    def groups(self) -> Mapping[str, "Study"]:
        """A study by level of `by`; empty without."""
        return {level: self[level] for level in self.result.get("groups", {})}

    def __getitem__(self, level: str) -> "Study":
        """The study of one group. Raises KeyError."""
        groups = self.result.get("groups", {})
        if level not in groups:
            raise KeyError(f"{level}: the groups are {', '.join(groups) or 'none'}")
        result = {k: v for k, v in self.result.items() if k != "groups"} | groups[level]
        return Study({**self.release, "result": result})

    @property
    def clipped(self) -> tuple[float, float]:
        """The share of the records' weight that the radius has taken, and its standard error."""
        found = self._own["clipped"]
        return float(found["share"]), float(found["standard_error"])

    @property
    def nobs(self) -> int:
        """The data set's public number of records (not of those that were in use); of persons where
        these have several rows.
        """
        return int(self.result["n"])

    @property
    def main(self) -> StudyFit:
        """The declared formula's fit, with errors that are robust to heteroscedasticity. Raises
        KeyError without one.
        """
        if "main" not in self._own:
            raise KeyError("The study was asked for without a main formula; ols() has any.")
        result = dict(self._own["main"]) | {"tuning": None}
        result["warnings"] = [*result["warnings"], *self.result["warnings"]]
        return StudyFit(document(self.release, {"formula": result["formula"]}, result))

    def ols(self, formula: str) -> StudyFit:
        """Least squares of any formula over the columns.

        >>> study.ols("price ~ sqft_living + grade").wald_test("sqft_living = 150")
        """
        return self._fit(self._read(formula))

    def ridge(self, formula: str, penalty: float) -> StudyFit:
        """Ridge regression: `penalty` is added to the mean square of each standardised column but
        the intercept.

        The target is the ridge's own coefficients, not least squares'.
        """
        if not penalty > 0:
            raise ValueError("the penalty is positive")
        moments, one = self._moments, model_of(self._moments, self._read(formula))
        weights = np.array([0.0 if name == "Intercept" else penalty for name in one.names])
        fit = moments.least_squares(one.y, one.X, np.diag(weights))
        estimand = self._estimand
        said = (
            f"Ridge regression with penalty {penalty:g} on standardised columns; "
            f"{estimand[:1].lower()}{estimand[1:]}"
        )
        result = fit_result(
            one,
            fit,
            self.nobs,
            estimand=said,
            warnings=self.result["warnings"],
            bared=moments.bared(one.y, one.X),
        )
        return StudyFit(document(self.release, {"formula": formula}, result))

    def lasso(self, formula: str) -> LassoPath:
        """The lasso's path of a formula with an intercept."""
        specification = self._read(formula)
        if not specification.intercept or self._moments.effects:
            raise InvalidFormula("The lasso's path is for formulas with an intercept.")
        return lasso_path(self._moments, model_of(self._moments, specification))

    def iv(self, formula: str) -> InstrumentalFit:
        """Two-stage least squares, `y ~ d + w | z + w`: exogenous regressors stand on both sides of
        the bar.

        >>> fit = study.iv("price ~ sqft_living + grade | bedrooms + grade")
        >>> fit.first_stage, fit.anderson_rubin()
        """
        specification = self._columns.specification(formula)
        return instrumental(self.release, self._moments, specification)

    def mixedlm(self, formula: str, constant: Sequence[str] = ()) -> MixedFit:
        """A linear mixed model with a random intercept of every person, as statsmodels' `mixedlm`
        and R's `lmer(y ~ x + (1 | person))`: coefficients, variance components and the ICC. Of a
        study of persons with several rows whose variables are the formula's columns and their
        means.

        constant: columns that are the same in all rows of a person, which need no mean. Raises
        InvalidFormula, and NotEstimable where the noise is too large.

        >>> variables = ["bmi", "mean(bmi)", "day", "mean(day)", "female"]
        >>> panel = client.dataset("clinic").study(variables, epsilon=4.0)
        >>> fit = panel.mixedlm("bmi ~ day + female", constant=["female"])
        >>> fit.params["day"], fit.icc, fit.components_conf_int()
        """
        specification = self._read(formula)
        return mixed(self.release, self._moments, self._columns, specification, constant)

    def robustness(
        self, base: str, variations: Sequence[str], term: str | None = None
    ) -> SpecificationCurve:
        """A coefficient over specifications. variations: "+ x", "- x" or whole formulas. term: the
        base's first one.

        >>> study.robustness("price ~ grade + sqft_living", ["- sqft_living", "+ bedrooms"]).plot()
        """
        formulas = (base, *(varied(base, text) for text in variations))
        fits = tuple(self.ols(text) for text in formulas)
        slopes = [name for name in fits[0].names if name != "Intercept"]
        chosen = slopes[0] if term is None else self._moments.names[self._columns.one(term)]
        if any(chosen not in fit.names for fit in fits):
            raise InvalidFormula(f"Every specification needs {chosen}.")
        return SpecificationCurve(chosen, formulas, fits)

    def select(
        self,
        response: str,
        candidates: Sequence[str] | None = None,
    ) -> Selection:
        """The subset of candidate terms with the best BIC; all other columns without candidates.

        Its intervals are simultaneous over all subsets. Nominal ones of a chosen subset are too
        short.
        """
        moments, columns = self._moments, self._columns
        place = columns.one(response)
        texts = candidates or [name for k, name in enumerate(self.names, 1) if k != place]
        groups = [columns.places(text) for text in texts]
        order = ranked(moments, place, groups)
        chosen = [p for k in order[0][0] for p in groups[k]]
        total = 1 + sum(map(len, groups))
        said = (
            "Chosen among subsets: intervals are simultaneous over all of them; p-values are not."
        )
        one = model(moments, place, chosen, True)
        fit = moments.least_squares(one.y, one.X)
        result = fit_result(
            one,
            fit,
            self.nobs,
            estimand=self._estimand,
            warnings=[said, *self.result["warnings"]],
            factor=simultaneous(total),
            bared=moments.bared(one.y, one.X),
        )
        formula = f"{response} ~ {' + '.join(texts[k] for k in order[0][0]) or '1'}"
        shown = tuple((tuple(texts[k] for k in subset), bic) for subset, bic in order[:_SHOWN])
        return Selection(StudyFit(document(self.release, {"formula": formula}, result)), shown)

    def corr(self, variables: Sequence[str] | None = None) -> Correlations:
        """All pairwise correlations, with intervals."""
        return correlations(self._moments, self._places(variables))

    def partial_corr(self, x: str, y: str, given: Sequence[str] = ()) -> PairwiseCorrelation:
        """The correlation of two columns, with others held fixed. Raises InvalidFormula where a
        column is named twice.
        """
        one, other = self._columns.one(x), self._columns.one(y)
        fixed = [p for text in given for p in self._columns.places(text)]
        _different(one, other, *fixed)
        return correlation(self._moments, one, other, fixed)

    def pca(self, variables: Sequence[str] | None = None) -> Components:
        """Principal components of the correlations."""
        return components(self._moments, self._places(variables))

    def factor(self, number: int, variables: Sequence[str] | None = None) -> Factors:
        """Common factors, rotated by varimax."""
        return factors(self._moments, self._places(variables), number)

    def mediation(self, x: str, mediator: str, y: str, controls: Sequence[str] = ()) -> Mediation:
        """How much of x's effect on y goes through a mediator, in linear models. Raises
        InvalidFormula where a column is named twice.
        """
        place = self._columns.one
        first, between, last = place(x), place(mediator), place(y)
        fixed = [p for text in controls for p in self._columns.places(text)]
        _different(first, between, last, *fixed)
        return mediation(self._moments, first, between, last, fixed)

    def sem(self, model: str, *, std_lv: bool = False) -> StructuralFit:
        """Confirmatory factors, paths and structural equations in lavaan's words: `f =~ x1 + x2`,
        `y ~ x`, `x1 ~~ x2`, `ab := a*b`.

        std_lv: factors of variance 1, in place of first loadings of 1. Raises InvalidFormula, and
        NotEstimable where the noise is too large, or a solution improper.

        >>> fit = study.sem("size =~ sqft_living + bedrooms + grade; price ~ size")
        >>> fit.parameter_estimates(), fit.fit_indices["cfi"]
        """
        if self._moments.effects:
            raise InvalidFormula(WHOLE)
        read = path_model(model, self._columns, self._moments.names, std_lv)
        alike = "design_effect" in self.result
        return structural(self._moments, read, alike=alike, warnings=self.result["warnings"])

    def reliability(self, items: Sequence[str]) -> Reliability:
        """Cronbach's alpha and McDonald's omega of the sum of some columns, with intervals.

        >>> study.reliability(["sqft_living", "bedrooms", "grade"]).conf_int("omega")
        """
        if self._moments.effects:
            raise InvalidFormula(WHOLE)
        places = self._places(items)
        _different(*places)
        return reliability(self._moments, places)

    def icc(self, raters: Sequence[str]) -> AgreementEstimates:
        """Intraclass correlations of columns in the same units: ICC(3,1) and (3,k) of consistency,
        (2,1) and (2,k) of absolute agreement, of one rater and of the mean of all.

        >>> readings = client.dataset("clinic").study(["first", "second"], epsilon=1.0)
        >>> readings.icc(["first", "second"])["ICC(2,1)"]
        """
        if self._moments.effects:
            raise InvalidFormula(WHOLE)
        places = self._places(raters)
        _different(*places)
        return intraclass(self._moments, places)

    def bland_altman(self, x: str, y: str) -> AgreementEstimates:
        """The mean of x − y and Bland and Altman's limits of agreement, with intervals.

        >>> readings = client.dataset("clinic").study(["first", "second"], epsilon=1.0)
        >>> readings.bland_altman("first", "second").conf_int()
        """
        if self._moments.effects:
            raise InvalidFormula(WHOLE)
        places = self._columns.one(x), self._columns.one(y)
        _different(*places)
        return limits(self._moments, *places)

    def r2(self, formula: str) -> tuple[float, float, float]:
        """R² of a formula with an intercept, and the ends of its 95 % interval (by the delta
        method, within [0, 1]).
        """
        specification = self._read(formula)
        if not specification.intercept:
            raise InvalidFormula("R squared is for formulas with an intercept.")
        estimate = self._moments.delta((specification.response, *specification.terms), _r_squared)
        value, half = float(estimate.values[0]), float(ndtri(0.975) * estimate.bse[0])
        low, high = np.clip([value - half, value + half], 0.0, 1.0)
        return value, float(low), float(high)

    def twin(self, rows: int = 1000, seed: int = 0, variables: Sequence[str] | None = None) -> Any:
        """An invented table with the released means, deviations and correlations, as a
        pandas.DataFrame.

        For trying programs and plots; it knows of no bounds, tails or curves.
        """
        places = self._places(variables)
        flags = tuple(bool(self.result["dummies"][p]) for p in places)
        values = twin(self._moments, places, flags, rows, seed)
        return _optional.pandas().DataFrame(
            values, columns=[self._moments.names[p] for p in places]
        )

    def to_frame(self) -> Any:
        """Means and standard deviations by column, with standard errors; needs pandas. Deviations
        from a person's means have standard deviations only. By group with a column of levels.
        """
        if self.groups:
            frames = []
            for level, study in self.groups.items():
                frame = study.to_frame().rename_axis("column").reset_index()
                frame.insert(0, self.release["query"].get("by", "level"), level)
                frames.append(frame)
            return _optional.pandas().concat(frames, ignore_index=True)
        moments, rows = self._moments, []
        for place in self._places(None):
            found = moments.covariance((place,))[0, 0]
            if moments.effects:
                rows.append({"sd": float(np.sqrt(max(found, 0.0)) * moments.scales[place])})
                continue
            mean = self._fit(Specification(moments.names[place] + " ~ 1", place, (), True))
            rows.append(
                {
                    "mean": mean.params["Intercept"],
                    "bse": mean.bse["Intercept"],
                    "sd": float(np.sqrt(max(found, 0.0)) * moments.scales[place]),
                }
            )
        return _optional.pandas().DataFrame(rows, index=list(self.names))

    def summary(self) -> Text:
        """The columns, what was clipped, and what can be asked for nothing."""
        share = (
            ""
            if self.result.get("groups")
            else f"Clipped: {number(self.clipped[0])} of the weight."
        )
        lines = [
            *self._headline(),
            "",
            f"Columns: {', '.join(self.names)}",
            *(
                [f"Groups: {', '.join(self.result['groups'])}"]
                if self.result.get("groups")
                else [share]
            ),
            ANALYSES,
            *self.result["warnings"],
            "",
            *self._footer(),
        ]
        return Text("\n".join(lines))

    def plot(self, ax: Any = None) -> Any:
        """The correlations; needs matplotlib, gives the Axes."""
        return self.corr().plot(ax)

    def check(self) -> None:
        Release.check(self)
        q = len(self.result["terms"])
        groups = self.result.get("groups")
        for of in groups.values() if groups else [self.result]:
            moments = Moments.read(self.result, of)
            inner = moments.narrow or moments
            matrices = (moments.sums, moments.root, inner.sums, inner.root)
            if any(matrix.shape != (q, q) for matrix in matrices):
                raise ValueError("the moments of a study fit its number of columns")
            _ = (float(of["radius"]), float(of["clipped"]["share"]))
        if len(self.result["dummies"]) != q or not np.isfinite(log(self.nobs)):
            raise ValueError("a study says of each column whether it is a dummy")

    @property
    def _own(self) -> Mapping[str, Any]:
        """Where the moments are. Raises ValueError for a study by groups."""
        if self.result.get("groups"):
            raise ValueError(
                "This study is by groups: take one first, such as "
                f"study[{next(iter(self.result['groups']))!r}]."
            )
        return self.result

    @property
    def _moments(self) -> Moments:
        return Moments.read(self.result, self._own)

    @property
    def _estimand(self) -> str:
        """What the fits of a study are about."""
        alike = ROWS_ALIKE if "design_effect" in self.result else ""
        return ESTIMAND + alike + (WITHIN if self.result.get("effects") else "")

    @property
    def _columns(self) -> Columns:
        return Columns(self.result["terms"])

    def _read(self, formula: str) -> Specification:
        specification = self._columns.specification(formula)
        if specification.instruments is not None:
            raise InvalidFormula("A formula with instruments is for iv().")
        return specification

    def _fit(self, specification: Specification) -> StudyFit:
        moments = self._moments
        one = model_of(moments, specification)
        fit = moments.least_squares(one.y, one.X)
        warnings = [*self._unsaid(specification), *self.result["warnings"]]
        bared = moments.bared(one.y, one.X)
        result = fit_result(
            one, fit, self.nobs, estimand=self._estimand, warnings=warnings, bared=bared
        )
        if self.result.get("persons") is not None:
            result["persons"] = self.result["persons"]
        return StudyFit(document(self.release, {"formula": specification.text}, result))

    def _unsaid(self, specification: Specification) -> list[str]:
        """What to say where a formula reads filled cells and leaves out the indicator that says
        which they are.
        """
        used = {self._moments.names[k] for k in specification.terms}
        wanted = unsaid_indicators(self.result["variables"], used)
        if not wanted:
            return []
        named = " + ".join(wanted)
        return [
            (
                f"Missing cells are filled in this formula's variables: add {named}, or "
                "coefficients are about filled cells too."
            )
        ]

    def _places(self, variables: Sequence[str] | None) -> tuple[int, ...]:
        if variables is None:
            return tuple(range(1, len(self.result["terms"])))
        return tuple(p for text in variables for p in self._columns.places(text))


def _r_squared(K: FloatArray) -> FloatArray:
    """(1,) of the covariance of (y, x…)."""
    cross = K[1:, 0]
    return np.array([cross @ np.linalg.solve(K[1:, 1:], cross) / K[0, 0]])


def _different(*places: int) -> None:
    if len(set(places)) < len(places):
        raise InvalidFormula("the columns that are named must all be different.")
