# SPDX-License-Identifier: Apache-2.0
"""What can be made of a study's released moments on a page: each analysis is one call of the
client's study, so that a page, a script in Python and one in R give the same numbers.

Nothing here reads a record or charges anybody: it is post-processing of one release.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from reticent_server.domain.patience import checkpoint
from reticent_server.errors import InvalidQuery, InvalidRequest
from reticent_server.kinds.study.kind import MOST_COLUMNS, MOST_TERMS
from reticent_server.workbench.controls import listed_texts

if TYPE_CHECKING:  # imported where a study is read: three tenths of a second
    from reticent._study.agreement import AgreementEstimates
    from reticent._study.fit import StudyFit
    from reticent.kinds.study import Study

Json = dict[str, Any]
Argument = str | list[str] | None

MOST_TEXT = 2_000
"""Characters of a field: of 64 columns, the most that a study has, with their names."""

MOST_VARIATIONS = 40
"""Formulas of a specification curve, and names of a list: each is a fit of some milliseconds."""


@dataclass(frozen=True, slots=True)
class AnalysisField:
    """adds: how a column is added to its text: to a formula, to a list of names, as the whole; or
    not at all. is_list: of texts, one a line or between commas.
    """

    name: str
    label: str
    told: str
    adds: str = ""
    is_list: bool = False
    is_needed: bool = True

    @property
    def key(self) -> str:
        """The name of the form's field, so that none is taken for a field of the page."""
        return f"f.{self.name}"


@dataclass(frozen=True, slots=True)
class StudyAnalysis:
    """method: of the client's study, and of the R package after `study_`; it takes the fields in
    their order. made: the result, as the fields of a release are. answers: which question the
    numbers answer.
    """

    name: str
    label: str
    asks: str
    method: str
    answers: str
    fields: tuple[AnalysisField, ...]
    made: Callable[..., Json]

    def arguments(self, texts: Mapping[str, str]) -> list[Argument]:
        """The arguments of the method. Raises InvalidRequest for what is needed and empty, or too
        long."""
        return [_argument(each, texts.get(each.name, "")) for each in self.fields]

    def run(self, study: "Study", texts: Mapping[str, str]) -> Json:
        """The result. Raises InvalidRequest and its kinds, in the client's words."""
        from reticent import ReticentError as ClientError  # noqa: PLC0415 - as above
        from reticent._study.interruption import interruptible  # noqa: PLC0415

        arguments = self.arguments(texts)
        try:
            with interruptible(checkpoint):
                return self.made(study, *arguments)
        except (ClientError, KeyError) as error:
            raise InvalidQuery(str(error).strip("'\"")) from None
        except ValueError:  # of a solver: numpy says "Singular matrix"
            raise InvalidQuery(
                "The study's moments do not distinguish these columns: leave one of them out."
            ) from None

    def python(self, texts: Mapping[str, str], study: str) -> str:
        """The line that prints it. study: an expression."""
        given = [json.dumps(each, ensure_ascii=False) for each in self._given(texts)]
        return f"print({study}.{self.method}({', '.join(given)}))"

    def r(self, texts: Mapping[str, str], study: str) -> str:
        """As `python`, in R."""
        given = [study, *map(_in_r, self._given(texts))]
        return f"print(study_{self.method}({', '.join(given)}))"

    def _given(self, texts: Mapping[str, str]) -> list[Argument]:
        """The arguments up to the last one that is not by default."""
        arguments = self.arguments(texts)
        while arguments and arguments[-1] is None:
            arguments.pop()
        return arguments


def _argument(field: AnalysisField, text: str) -> Argument:
    text = text.strip()
    if len(text) > MOST_TEXT:
        raise InvalidRequest(f"{field.label}: write at most {MOST_TEXT:,} characters.")
    if not text and field.is_needed:
        raise InvalidRequest(f"{field.label}: it is needed.")
    if not field.is_list:
        return text or None
    listed = listed_texts(text)
    if not listed and field.is_needed:
        raise InvalidRequest(f"{field.label}: it is needed.")
    if len(listed) > MOST_VARIATIONS:
        raise InvalidRequest(f"{field.label}: name at most {MOST_VARIATIONS}.")
    return listed or None


def _in_r(value: Argument) -> str:
    if isinstance(value, list):
        return f"c({', '.join(map(_in_r, value))})"
    return "NULL" if value is None else json.dumps(value, ensure_ascii=False)


def _number(value: float) -> float | None:
    """As JSON has it: none where there is none."""
    return float(value) if isfinite(value) else None


def _numbers(values: Iterable[float]) -> list[float | None]:
    return [_number(value) for value in values]


def _intervals(ends: Iterable[Iterable[float]]) -> list[list[float | None]]:
    return [_numbers(each) for each in ends]


_KEPT = (
    "terms", "coefficients", "standard_errors", "privacy_standard_errors",
    "confidence_intervals", "p_values", "estimable", "confidence_level", "scale", "estimand",
    "n", "persons", "warnings",
)  # fmt: skip
"""Of a fit's result what a reader reads; the rest is for tests of hypotheses in a program."""


def _fit(fit: "StudyFit") -> Json:
    return {name: fit.result[name] for name in _KEPT if name in fit.result}


def _regression(study: "Study", formula: str) -> Json:
    fit = study.ols(formula)
    if "Intercept" not in fit.names or len(fit.names) < 2 or not all(fit.estimable):
        return _fit(fit)
    value, low, high = study.r2(formula)
    return _fit(fit) | {"rsquared": _number(value), "rsquared_interval": _numbers((low, high))}


def _two_stage(study: "Study", formula: str) -> Json:
    fit = study.iv(formula)
    first = [
        {"column": name, "F": _number(each["F"]), "p_value": _number(each["pvalue"])}
        for name, each in fit.first_stage.items()
    ]
    sets = fit.result["anderson_rubin"]
    found = _fit(fit) | {"first_stage": first}
    return found if sets is None else found | {"anderson_rubin_intervals": sets}


def _correlations(study: "Study", variables: list[str] | None) -> Json:
    found = study.corr(variables)
    pairs = [(i, j) for i in range(len(found.names)) for j in range(i)]
    if not pairs:
        raise InvalidRequest("Columns: name two at least.")
    return {
        "pairs": [f"{found.names[j]}, {found.names[i]}" for i, j in pairs],
        "correlations": _numbers([found.values[pair] for pair in pairs]),
        "standard_errors": _numbers([found.bse[pair] for pair in pairs]),
        "privacy_standard_errors": _numbers([found.privacy_bse[pair] for pair in pairs]),
        "confidence_intervals": _intervals(
            [(found.lower[pair], found.upper[pair]) for pair in pairs]
        ),
        "n": study.nobs,
        "warnings": list(study.result["warnings"]),
    }


def _partial(study: "Study", x: str, y: str, given: list[str] | None) -> Json:
    pair = study.partial_corr(x, y, given or ())
    return {
        "pairs": [", ".join(pair.names)],
        "correlations": [_number(pair.value)],
        "standard_errors": [_number(pair.bse)],
        "privacy_standard_errors": [_number(pair.privacy_bse)],
        "confidence_intervals": [_numbers(pair.conf_int())],
        "p_values": [_number(pair.pvalue)],
        "n": study.nobs,
        "warnings": list(study.result["warnings"]),
    }


def _mediation(study: "Study", x: str, mediator: str, y: str, controls: list[str] | None) -> Json:
    found = study.mediation(x, mediator, y, controls or ())
    return {
        "effects": [_EFFECTS[name] for name in found.effects],
        "estimates": _numbers(found.values),
        "standard_errors": _numbers(found.bse),
        "privacy_standard_errors": _numbers(found.privacy_bse),
        "confidence_intervals": _intervals(found.conf_int()),
        "p_values": _numbers(found.pvalues),
        "n": study.nobs,
        "warnings": [_CAUSAL, *study.result["warnings"]],
    }


_EFFECTS = {
    "indirect": "indirect, through the mediator",
    "direct": "direct",
    "total": "total",
    "a": "a: x on the mediator",
    "b": "b: the mediator on y",
}
_CAUSAL = "Effects are causal only under assumptions that no release can check."


MOST_STRUCTURAL = 40
"""Columns of a structural model on a page, which takes half a second and 100 MB; its memory grows
with their fourth power, to 600 MB for 64."""

_WORD = re.compile(r"[A-Za-z_.][A-Za-z0-9_.]*")


def _structural(study: "Study", model: str) -> Json:
    if len(set(_WORD.findall(model)).intersection(study.names)) > MOST_STRUCTURAL:
        raise InvalidRequest(
            f"Model: name at most {MOST_STRUCTURAL} columns of the study, or fit it in Python or R."
        )
    fit = study.sem(model)
    shown = fit.estimates
    return {
        "parameters": [str(e).strip() for e in shown],
        "estimates": _numbers(e.est for e in shown),
        "standard_errors": _numbers(e.se for e in shown),
        "privacy_standard_errors": _numbers(e.privacy_se for e in shown),
        "confidence_intervals": _intervals(e.conf_int() for e in shown),
        "p_values": _numbers(e.pvalue for e in shown),
        "standardized": _numbers(e.std_all for e in shown),
        "fit_indices": {k: _number(v) for k, v in fit.fit_indices.items()},
        "n": study.nobs,
        "warnings": list(fit.notes),
    }


def _reliability(study: "Study", items: list[str]) -> Json:
    found = study.reliability(items)
    return {
        "coefficients_of_reliability": ["alpha", "omega"],
        "estimates": _numbers((found.alpha, found.omega)),
        "standard_errors": _numbers((found.alpha_bse, found.omega_bse)),
        "privacy_standard_errors": _numbers((found.alpha_privacy_bse, found.omega_privacy_bse)),
        "confidence_intervals": _intervals((found.conf_int("alpha"), found.conf_int("omega"))),
        "n": study.nobs,
        "warnings": [*found.notes, *study.result["warnings"]],
    }


def _mixed(study: "Study", formula: str, constant: list[str] | None) -> Json:
    fit = study.mixedlm(formula, constant or ())
    ends = fit.components_conf_int()
    rows = [
        {
            "term": name,
            "estimate": _number(value),
            "standard_error": _number(fit.components_bse[name]),
            "confidence_interval": _numbers(ends[name]),
        }
        for name, value in fit.components.items()
    ]
    return _fit(fit) | {"variance_components": rows}


def _intraclass(study: "Study", raters: list[str]) -> Json:
    return _agreement(study, study.icc(raters))


def _limits(study: "Study", x: str, y: str) -> Json:
    return _agreement(study, study.bland_altman(x, y))


def _agreement(study: "Study", found: "AgreementEstimates") -> Json:
    return {
        "measures": list(found.names),
        "estimates": _numbers(found.values),
        "standard_errors": _numbers(found.bse),
        "privacy_standard_errors": _numbers(found.privacy_bse),
        "confidence_intervals": _intervals(found.conf_int()),
        "n": study.nobs,
        "warnings": [*found.notes, *study.result["warnings"]],
    }


def _robustness(study: "Study", base: str, variations: list[str], term: str | None) -> Json:
    curve = study.robustness(base, variations, term)
    at = [fit.names.index(curve.term) for fit in curve.fits]
    told = [
        (fit.result, place) for fit, place in zip(curve.fits, at, strict=True)
    ]  # of each formula the row of the term
    notes = [
        f"{formula}: {note}"
        for formula, fit in zip(curve.formulas, curve.fits, strict=True)
        for note in fit.result["warnings"]
        if note not in study.result["warnings"]
    ]
    return {
        "term": curve.term,
        "specifications": list(curve.formulas),
        "coefficients": [result["coefficients"][k] for result, k in told],
        "standard_errors": [result["standard_errors"][k] for result, k in told],
        "privacy_standard_errors": [result["privacy_standard_errors"][k] for result, k in told],
        "confidence_intervals": [result["confidence_intervals"][k] for result, k in told],
        "p_values": [result["p_values"][k] for result, k in told],
        "estimable": [result["estimable"][k] for result, k in told],
        "n": study.nobs,
        "warnings": [*notes, *study.result["warnings"]],
    }


def _selection(study: "Study", response: str, candidates: list[str] | None) -> Json:
    found = study.select(response, candidates)
    ranking = {
        "subsets": [" + ".join(names) or "1" for names, _ in found.ranking],
        "bic": [float(bic) for _, bic in found.ranking],
    }
    return _fit(found.fit) | {"ranking": ranking}


_LEAST = "Least squares, from the study's moments; nothing more is charged"
_FORMULA = AnalysisField(
    "formula", "Formula", "Such as y ~ x + g, of the study's columns.", adds="formula"
)
_X = AnalysisField("x", "x", "One column of the study.", adds="whole")
_Y = AnalysisField("y", "y", "One column of the study.", adds="whole")

ANALYSES: Mapping[str, StudyAnalysis] = {
    each.name: each
    for each in (
        StudyAnalysis(
            "regression", "Regression", "How does y change with x, others equal?", "ols",
            _LEAST, (_FORMULA,), _regression,
        ),
        StudyAnalysis(
            "correlations", "Correlations", "Which columns go together?", "corr",
            "Pearson correlations, from the study's moments; nothing more is charged",
            (
                AnalysisField(
                    "variables", "Columns", "Between commas; empty: all of them.", "names",
                    is_list=True, is_needed=False,
                ),
            ),
            _correlations,
        ),
        StudyAnalysis(
            "partial", "Partial correlation", "Do x and y go together, others held fixed?",
            "partial_corr",
            "A partial correlation, from the study's moments; nothing more is charged",
            (
                _X,
                _Y,
                AnalysisField(
                    "given", "Held fixed", "Between commas.", "names", is_list=True, is_needed=False
                ),
            ),
            _partial,
        ),
        StudyAnalysis(
            "instruments", "Instrumental variables", "What does x do to y (instrument z)?", "iv",
            "Two-stage least squares, from the study's moments; nothing more is charged",
            (
                AnalysisField(
                    "formula", "Formula with instruments",
                    "y ~ x + w | z + w: after the bar the instruments, and again what is "
                    "exogenous.",
                    adds="formula",
                ),
            ),
            _two_stage,
        ),
        StudyAnalysis(
            "mediation", "Mediation", "How much of x's effect on y goes through m?", "mediation",
            "Linear mediation, from the study's moments; nothing more is charged",
            (
                _X,
                AnalysisField("mediator", "Mediator", "One column of the study.", adds="whole"),
                _Y,
                AnalysisField(
                    "controls", "Held fixed", "Between commas.", "names", is_list=True,
                    is_needed=False,
                ),
            ),
            _mediation,
        ),
        StudyAnalysis(
            "structural", "Factors and paths", "Does a model of factors and paths fit?", "sem",
            "Normal maximum likelihood, from the study's moments; nothing more is charged",
            (
                AnalysisField(
                    "model", "Model",
                    "Such as f =~ x1 + x2 + x3; y ~ b*f + x1; x1 ~~ x2; lines end at “;”.",
                    adds="formula",
                ),
            ),
            _structural,
        ),
        StudyAnalysis(
            "reliability", "Reliability", "How reliable is the sum of some items?", "reliability",
            "Cronbach's alpha and McDonald's omega, from the study's moments; nothing more is "
            "charged",
            (
                AnalysisField("items", "Items", "Between commas.", "names", is_list=True),
            ),
            _reliability,
        ),
        StudyAnalysis(
            "agreement", "Agreement", "How alike are several raters or readings?", "icc",
            "Intraclass correlations, from the study's moments; nothing more is charged",
            (
                AnalysisField(
                    "raters", "Raters", "Columns in the same units, between commas.", "names",
                    is_list=True,
                ),
            ),
            _intraclass,
        ),
        StudyAnalysis(
            "limits", "Limits of agreement", "By how much do two methods differ?", "bland_altman",
            "Bland and Altman's limits, from the study's moments; nothing more is charged",
            (_X, _Y),
            _limits,
        ),
        StudyAnalysis(
            "mixed", "Mixed model", "How does y change with x, persons having levels of their own?",
            "mixedlm",
            "A random intercept of every person, from the study's moments; nothing more is charged",
            (
                AnalysisField(
                    "formula", "Formula",
                    "Such as y ~ x, of a study of persons that has mean(y) beside y, and so on.",
                    adds="formula",
                ),
                AnalysisField(
                    "constant", "The same in all rows of a person",
                    "Columns that need no mean, between commas.", "names", is_list=True,
                    is_needed=False,
                ),
            ),
            _mixed,
        ),
        StudyAnalysis(
            "robustness", "Robustness", "Does a coefficient hold in other specifications?",
            "robustness", _LEAST,
            (
                AnalysisField("base", "Formula of the base", "Such as y ~ x + g.", adds="formula"),
                AnalysisField(
                    "variations", "Variations",
                    "One a line: “+ z” adds a term, “- x” leaves one out, a whole formula "
                    "replaces it.",
                    is_list=True,
                ),
                AnalysisField(
                    "term", "Coefficient", "Empty: the base's first one.", is_needed=False
                ),
            ),
            _robustness,
        ),
        StudyAnalysis(
            "selection", "Selection", "Which terms explain y best (BIC)?", "select",
            "Least squares of the best subset, with intervals that survive the search",
            (
                AnalysisField("response", "y", "One column of the study.", adds="whole"),
                AnalysisField(
                    "candidates", "Candidates", "Between commas; empty: all other columns.",
                    "names", is_list=True, is_needed=False,
                ),
            ),
            _selection,
        ),
    )
}  # fmt: skip
"""By name, in the order of the desk."""


def check_study(document: Mapping[str, Any]) -> None:
    """Raises KeyError, TypeError or ValueError where a document lacks what the client reads, and
    InvalidQuery where it has more columns than a server releases."""
    from reticent.kinds.study import Study  # noqa: PLC0415 - as above

    columns = len(document["result"]["terms"]) - 1
    groups = len(document["result"].get("groups") or "1")
    if columns > MOST_TERMS or columns * groups > MOST_COLUMNS:
        raise InvalidQuery(
            f"A study has at most {MOST_TERMS} columns, and of all groups together {MOST_COLUMNS}: "
            "analyse this file in Python, by reticent.load, or in R."
        )
    Study(document).check()


def study_of(document: Mapping[str, Any], group: str) -> "Study":
    """The client's study of a release, or of one group of it. Raises InvalidRequest for a group
    that there is not.
    """
    from reticent.kinds.study import Study  # noqa: PLC0415 - as above

    study = Study(document)
    groups = list(document["result"].get("groups") or ())
    if not groups:
        return study
    if group not in groups:
        raise InvalidRequest(f"The study is by groups: choose one of {', '.join(groups)}.")
    return study[group]
