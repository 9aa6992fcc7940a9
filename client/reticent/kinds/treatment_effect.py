# SPDX-License-Identifier: Apache-2.0
"""An adjusted effect of a treatment, with its overlap and its balance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from reticent import _optional
from reticent._drawing import SAMPLING, TOTAL, axes_of, intervals
from reticent._errors import InvalidQuery
from reticent._release import Release
from reticent._text import Text, number, probability, text_table
from reticent.kinds.binned_residuals import as_released
from reticent.results.coefficients import Coefficients
from reticent.results.link import link_name

FloatArray = NDArray[np.float64]
_Z = float(ndtri(0.975))
_LIMIT = 0.1
"""Standard deviations that covariates may differ by after weighting (Austin 2009)."""
_NO_BALANCE = "this release has no balance table: it needs weights, and a profile of the covariates"
_NO_OVERLAP = "this release has no propensities: g-computation has no weights"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class TreatmentEffectResults(Release):
    """A released effect of a treatment, others equal. Intervals count sampling, privacy noise and
    the errors of the models.

    >>> found = ds.treatment_effect("price", "waterfront", "grade + sqft_living", "att",
    ...     epsilon=2.0)
    >>> found.effect, found.conf_int(), found.pvalue, found.summary()
    >>> found.balance(); found.plot(); found.love_plot(); found.overlap_plot()
    """

    @property
    def effect(self) -> float:
        """In the units of the response."""
        return float(self.result["effect"])

    @property
    def bse(self) -> float:
        """Standard error: sampling, noise, the models' errors and what is cut."""
        return float(self.result["standard_error"])

    @property
    def privacy_bse(self) -> float:
        """The part of this release's own noise."""
        return float(self.result["privacy_standard_error"])

    @property
    def models_bse(self) -> float:
        """The part that comes from errors of the models' coefficients."""
        return float(self.result["models_standard_error"])

    @property
    def pvalue(self) -> float:
        """Of no effect, two-sided; nan without an interval."""
        return _or_nan(self.result["p_value"])

    @property
    def estimand(self) -> str:
        """Whose effect, in words."""
        return str(self.result["estimand"])

    @property
    def estimator(self) -> str:
        """aipw, ipw or gcomp."""
        return str(self.result["estimator"])

    @property
    def warnings(self) -> list[str]:
        """Why there is no interval, and what to be careful about."""
        return list(self.result["warnings"])

    @property
    def nobs(self) -> int:
        """The data set's public number of records (not of those that were in use)."""
        return int(self.result["n"])

    def conf_int(self, alpha: float | None = None) -> tuple[float, float]:
        """(lower, upper) at 1 − alpha, by default the level that was asked for; nan where the
        interval was declined. Costs nothing.
        """
        low, high = (_or_nan(end) for end in self.result["confidence_interval"])
        if alpha is None or np.isnan(low):
            return low, high
        half = float(ndtri(1 - alpha / 2)) * self.bse
        return self.effect - half, self.effect + half

    def balance(self) -> Any:
        """A pandas.DataFrame of standardised mean differences by covariate, before and after
        weighting, with the standard errors of their noise; needs pandas.

        Raises ValueError where the release has none.
        """
        found = self._balance
        columns = (
            "before", "before_standard_errors", "after", "after_standard_errors",
        )  # fmt: skip
        frame = _optional.pandas().DataFrame({name: found[name] for name in columns})
        frame.index = found["terms"]
        return frame

    def to_frame(self) -> Any:
        """A pandas.DataFrame with the effect as its one row; needs pandas."""
        low, high = self.conf_int()
        values = {
            "effect": self.effect,
            "bse": self.bse,
            "privacy_bse": self.privacy_bse,
            "pvalue": self.pvalue,
            "lower": low,
            "upper": high,
        }
        return _optional.pandas().DataFrame(values, index=[str(self.query["treatment"])])

    def plot(self, ax: Any = None) -> Any:
        """The effect with its interval; needs matplotlib, gives the Axes."""
        name = str(self.query["treatment"])
        axes = intervals([name], [self.effect], [self.conf_int()], ax)
        axes.axvline(0.0, color="black", linewidth=0.8, linestyle=":")
        axes.set_xlabel(f"effect on {self.query['y']}, interval")
        return axes

    def love_plot(self, ax: Any = None) -> Any:
        """Standardised differences before and after weighting, with 95 % intervals of their noise;
        needs matplotlib, gives the Axes. Raises ValueError where the release has none.
        """
        axes, found = axes_of(ax), self._balance
        rows = np.arange(len(found["terms"]))
        for name, colour, shift in (("before", TOTAL, -0.1), ("after", SAMPLING, 0.1)):
            half = _Z * np.array(found[f"{name}_standard_errors"])
            axes.errorbar(
                found[name],
                rows + shift,
                xerr=half,
                fmt="o",
                color=colour,
                label=f"{name} weighting",
            )
        for at, style in ((0.0, ":"), (-_LIMIT, "--"), (_LIMIT, "--")):
            axes.axvline(at, color="black", linewidth=0.8, linestyle=style)
        axes.set_yticks(rows, found["terms"])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel("standardised mean difference")
        axes.legend(loc="best", fontsize="small")
        return axes

    def overlap_plot(self, ax: Any = None) -> Any:
        """The propensities of both arms, treated above and controls below; needs matplotlib, gives
        the Axes. Raises ValueError where the release has none.
        """
        axes, found = axes_of(ax), self._overlap
        edges = np.array(found["edges"])
        for name, colour, sign in (("treated", SAMPLING, 1.0), ("controls", TOTAL, -1.0)):
            heights = sign * np.array(found[name])
            axes.bar(edges[:-1], heights, np.diff(edges), align="edge", color=colour, label=name)
        axes.axhline(0.0, color="black", linewidth=0.8)
        axes.set_xlabel("propensity")
        axes.set_ylabel("records, with noise")
        axes.legend(loc="best", fontsize="small")
        return axes

    @property
    def _balance(self) -> dict[str, Any]:
        found = self.result.get("balance")
        if found is None:
            raise ValueError(_NO_BALANCE)
        return dict(found)

    @property
    def _overlap(self) -> dict[str, Any]:
        found = self.result.get("overlap")
        if found is None:
            raise ValueError(_NO_OVERLAP)
        return dict(found)

    def summary(self) -> Text:
        """The effect, its balance, the guarantee and the charge."""
        about = f"Effect of {self.query['treatment']} on {self.query['y']}: {self.estimand}"
        lines = [
            *self._headline(),
            about,
            f"Estimator: {self.estimator}   records: {self.nobs:,}",
            *self._effect_lines(),
            *self._balance_lines(),
            *(f"Note: {each}" for each in self.warnings),
        ]
        return Text("\n".join([*lines, "", *self._footer()]))

    def _effect_lines(self) -> list[str]:
        low, high = (number(end) for end in self.conf_int())
        level, p = f"{100 * float(self.result['confidence_level']):g} %", probability(self.pvalue)
        parts = f"noise {number(self.privacy_bse)}, models {number(self.models_bse)}"
        return [
            f"Effect {number(self.effect)}, {level} interval [{low}, {high}], p {p}",
            f"Standard error {number(self.bse)}: {parts}",
        ]

    def _balance_lines(self) -> list[str]:
        found = self.result.get("balance")
        if found is None:
            return []
        header = ("difference in", "before", "after", "noise")
        names = ("terms", "before", "after", "after_standard_errors")
        rows = zip(*(found[name] for name in names), strict=True)
        cells = [(str(name), *map(number, values)) for name, *values in rows]
        return ["", *text_table(header, cells), ""]

    def check(self) -> None:
        Release.check(self)
        _ = (self.effect, self.bse, self.privacy_bse, self.models_bse, self.pvalue, self.nobs)
        _ = (self.conf_int(), self.estimand, self.estimator, self.warnings)


def models_of(
    treatment: str,
    propensity: Coefficients | None,
    outcome: Coefficients | None,
    covariates: str | None = None,
) -> dict[str, Any]:
    """The fields of the question that released models say: covariates, coefficients, covariances.
    covariates: those that were named.

    Raises InvalidQuery for models that are not of one treatment and the same covariates, and where
    neither models nor covariates are given.
    """
    if covariates is None and propensity is None and outcome is None:
        raise InvalidQuery("name covariates, or give a released model of them")
    fields: dict[str, Any] = {}
    if propensity is not None:
        fields |= _propensity(treatment, propensity)
    if outcome is None:
        return fields
    names = list(outcome.names)
    terms = [name for name in names if _is_of(treatment, name)]
    if len(terms) != 1 or names[0] != "Intercept":
        raise InvalidQuery("the outcome's model needs an intercept and the treatment as a term")
    others = [name for name in names[1:] if name != terms[0]]
    wanted = others if propensity is None else list(propensity.names)[1:]
    if sorted(wanted) != sorted(others):
        raise InvalidQuery("the outcome's model needs the covariates of the propensity model")
    if propensity is None:
        right = as_released(outcome.formula, names).split("~", 1)[1]
        kept = [term for term in _summands(right) if not _is_of(treatment, term)]
        fields["covariates"] = " + ".join(kept)
    order = [names.index(name) for name in ("Intercept", terms[0], *wanted)]
    return fields | {
        "outcome": np.asarray(outcome.params)[order].tolist(),
        "outcome_covariance": outcome.cov_params()[np.ix_(order, order)].tolist(),
        "outcome_link": link_name(outcome.result),
    }


def _propensity(treatment: str, fit: Coefficients) -> dict[str, Any]:
    """The covariance of the noise is the fit's, with each error scaled to its part of noise."""
    response, right = as_released(fit.formula, fit.names).split("~", 1)
    if response.strip().strip("`") != treatment or link_name(fit.result) != "logit":
        raise InvalidQuery("propensity takes a released logit of the treatment")
    part = np.asarray(fit.privacy_bse) / np.asarray(fit.bse)
    return {
        "covariates": right.strip(),
        "propensity": np.asarray(fit.params).tolist(),
        "propensity_noise": (fit.cov_params() * np.outer(part, part)).tolist(),
    }


def _is_of(treatment: str, term: str) -> bool:
    """Whether a term is the treatment itself, also where it has two levels."""
    for name in (treatment, f"`{treatment}`", f"C({treatment})"):
        level = term.removeprefix(name)
        is_level = level.startswith("[") and level.find("]") == len(level) - 1
        if term == name or (term.startswith(name) and is_level):
            return True
    return False


def _summands(right: str) -> Sequence[str]:
    """The terms of a formula's right side, at the outer level."""
    found, depth = [""], 0
    for sign in right:
        depth += (sign in "([") - (sign in ")]")
        if sign == "+" and not depth:
            found.append("")
        else:
            found[-1] += sign
    return [each.strip() for each in found]


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else float(value)
