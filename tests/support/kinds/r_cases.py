# SPDX-License-Identifier: Apache-2.0
"""What R's analyses of a study are compared with: released studies, and what the Python client
makes of them.

    cd tests && python -m support.kinds.r_cases            the Python client's answers about the
                                                           fixture's studies
    cd tests && python -m support.kinds.r_cases --studies  about new studies

Writes r/tests/testthat/study.json: `studies`, releases as the server sends them, by name, and
`cases`, each with a study, a group of it or null, an analysis, its arguments by the names of R, and
the `result` or the `refusal` of Python. tests/r compares the answers with those of today's client.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from reticent import InvalidFormula, NotEstimable
from reticent._study.agreement import AgreementEstimates
from reticent._study.fit import StudyFit
from reticent.kinds.study import Study
from support.kinds import r_studies

FIXTURE = Path(__file__).resolve().parents[3] / "r/tests/testthat/study.json"
TWINS = 20_000
"""Rows of Python's twin: its moments have errors of a hundredth."""

HOUSES = "whole"


def fit_of(fit: StudyFit) -> dict[str, Any]:
    """A fit as numbers and its warnings."""
    p = len(fit.names)
    return {
        "terms": list(fit.names),
        "coef": np.asarray(fit.params),
        "vcov": fit.cov_params(),
        "errors": np.asarray(fit.bse),
        "privacy_errors": np.asarray(fit.privacy_bse),
        "p_values": np.asarray(fit.pvalues),
        "intervals": fit.conf_int(),
        "intervals_90": fit.conf_int(alpha=0.1),
        "scale": fit.scale,
        "gate": fit.result["gate"],
        "warnings": list(fit.result["warnings"]),
        "wald": _wald(fit) if p > 1 and all(fit.estimable) else None,
    }


def _wald(fit: StudyFit) -> float:
    """Of the last coefficient."""
    return float(fit.wald_test(f"{fit.names[-1]} = 0").statistic)


def _corr(study: Study, **arguments: Any) -> dict[str, Any]:
    found = study.corr(**arguments)
    names = ("values", "bse", "privacy_bse", "lower", "upper")
    return {name: getattr(found, name) for name in names}


def _partial(study: Study, **arguments: Any) -> dict[str, Any]:
    found = study.partial_corr(**arguments)
    return {
        "value": found.value, "bse": found.bse, "privacy_bse": found.privacy_bse,
        "p_value": found.pvalue,
        "interval": found.conf_int(),
    }  # fmt: skip


def _pca(study: Study, **arguments: Any) -> dict[str, Any]:
    found = study.pca(**arguments)
    names = ("eigenvalues", "bse", "privacy_bse", "vectors", "explained", "noise", "above_noise")
    return {name: getattr(found, name) for name in names}


def _factor(study: Study, **arguments: Any) -> dict[str, Any]:
    found = study.factor(**arguments)
    return {"loadings": found.loadings, "uniqueness": found.uniqueness}


def _lasso(study: Study, **arguments: Any) -> dict[str, Any]:
    found = study.lasso(**arguments)
    return {"penalties": found.penalties, "coefficients": found.coefficients, "noise": found.noise}


def _select(study: Study, **arguments: Any) -> dict[str, Any]:
    found = study.select(**arguments)
    terms = [" + ".join(names) or "1" for names, _ in found.ranking]
    bic = [bic for _, bic in found.ranking]
    return {**fit_of(found.fit), "formula": found.fit.formula, "ranking": terms, "bic": bic}


def _iv(study: Study, **arguments: Any) -> dict[str, Any]:
    found = study.iv(**arguments)
    try:
        sets: Any = [[_end(x) for x in ends] for ends in found.anderson_rubin()]
    except NotEstimable as refusal:
        sets = str(refusal)
    first = {name: [each["F"], each["pvalue"]] for name, each in found.first_stage.items()}
    return {**fit_of(found), "first_stage": first, "anderson_rubin": sets}


def _end(value: float) -> float | str:
    """A number, or R's name of what JSON has none for."""
    return value if np.isfinite(value) else "Inf" if value > 0 else "-Inf"


def _mediation(study: Study, **arguments: Any) -> dict[str, Any]:
    found = study.mediation(**arguments)
    return {
        "values": found.values, "bse": found.bse, "privacy_bse": found.privacy_bse,
        "p_values": found.pvalues,
        "intervals": found.conf_int(),
    }  # fmt: skip


def _mixed(study: Study, **arguments: Any) -> dict[str, Any]:
    fit = study.mixedlm(**arguments)
    return {
        **fit_of(fit),
        "estimand": fit.result["estimand"],
        "components": list(fit.components.values()),
        "components_errors": list(fit.components_bse.values()),
        "components_intervals": [
            [_end(end) for end in ends] for ends in fit.components_conf_int(0.1).values()
        ],
    }


def _robustness(study: Study, **arguments: Any) -> dict[str, Any]:
    found = study.robustness(**arguments)
    return {
        "term": found.term, "formulas": list(found.formulas), "values": found.values,
        "bse": found.bse,
        "intervals": found.conf_int(),
    }  # fmt: skip


def _sem(study: Study, **arguments: Any) -> dict[str, Any]:
    found = study.sem(**arguments)
    rows = found.estimates
    return {
        "parameters": [str(e) for e in rows],
        "est": [e.est for e in rows],
        "se": [e.se for e in rows],
        "privacy_se": [e.privacy_se for e in rows],
        "std": [e.std_all for e in rows],
        "std_se": [e.std_se for e in rows],
        "intervals": [e.conf_int() for e in rows],
        "fit": list(found.fit_indices.values()),
        "rsquared": list(found.rsquared.values()),
        "notes": list(found.notes),
    }


def _reliability(study: Study, **arguments: Any) -> dict[str, Any]:
    found = study.reliability(**arguments)
    return {
        "values": [found.alpha, found.omega],
        "errors": [found.alpha_bse, found.omega_bse],
        "privacy_errors": [found.alpha_privacy_bse, found.omega_privacy_bse],
        "intervals": [found.conf_int("alpha"), found.conf_int("omega")],
        "notes": list(found.notes),
    }


def _agreement(found: AgreementEstimates) -> dict[str, Any]:
    return {
        "values": found.values,
        "errors": found.bse,
        "privacy_errors": found.privacy_bse,
        "intervals": found.conf_int(),
        "notes": list(found.notes),
    }


def _twin(study: Study, **arguments: Any) -> dict[str, Any]:
    frame = study.twin(rows=TWINS, **arguments)
    return {
        "names": list(frame.columns),
        "means": frame.mean(),
        "deviations": frame.std(),
        "corr": frame.corr().to_numpy(),
    }


def _frame(study: Study) -> dict[str, Any]:
    frame = study.to_frame()
    return {name: frame[name] for name in ("mean", "bse", "sd") if name in frame}


ANALYSES: Mapping[str, Callable[..., dict[str, Any]]] = {
    "bland_altman": lambda study, x, y: _agreement(study.bland_altman(x, y)),
    "corr": _corr,
    "factor": _factor,
    "frame": _frame,
    "icc": lambda study, raters: _agreement(study.icc(raters)),
    "iv": _iv,
    "lasso": _lasso,
    "main": lambda study: fit_of(study.main),
    "mediation": _mediation,
    "mixedlm": _mixed,
    "ols": lambda study, formula: fit_of(study.ols(formula)),
    "partial_corr": _partial,
    "pca": _pca,
    "reliability": _reliability,
    "sem": _sem,
    "r2": lambda study, formula: {"values": study.r2(formula)},
    "ridge": lambda study, formula, penalty: fit_of(study.ridge(formula, penalty)),
    "robustness": _robustness,
    "select": _select,
    "twin": _twin,
}


def asked() -> Iterator[tuple[str, str | None, str, dict[str, Any]]]:
    """(study, group, analysis, arguments)."""
    y, ols = "log(price)", "ols"
    for formula in (
        f"{y} ~ size + grade", "log( price )~C(town)*size + near",
        f"{y} ~ size + I(size ** 2) - grade", f"{y} ~ 0 + size + grade",
        f"{y} ~ -1 + town + size:town", f"{y} ~ 1", "near ~ size",
        'C(town)[b] ~ C(town, ref="a")[c] + size', "I(size**2) ~ size + lot - size",
    ):  # fmt: skip
        yield HOUSES, None, ols, {"formula": formula}
    for formula in (
        f"{y} + size", f"{y} ~ nothing", f"{y} ~ size + {y}", "town ~ size", f"{y} ~ size +",
        f"{y} ~ size + + lot",
        f"{y} ~ (size", f"{y} ~ 0", f"{y} ~ size | lot", f"{y} ~ size:lot",
        f"{y} ~ size | lot | near",
    ):  # fmt: skip
        yield HOUSES, None, ols, {"formula": formula}
    few = [y, "size", "grade", "lot"]
    yield HOUSES, None, "corr", {"variables": None}
    yield HOUSES, None, "corr", {"variables": [y, "town", "near"]}
    yield HOUSES, None, "partial_corr", {"x": "grade", "y": y, "given": ["size", "C(town)"]}
    yield HOUSES, None, "partial_corr", {"x": "grade", "y": "lot", "given": []}
    yield HOUSES, None, "partial_corr", {"x": "town", "y": "lot", "given": []}
    yield HOUSES, None, "pca", {"variables": few}
    yield HOUSES, None, "pca", {"variables": None}
    yield HOUSES, None, "factor", {"number": 1, "variables": few}
    yield HOUSES, None, "factor", {"number": 2, "variables": [*few, "near"]}
    yield HOUSES, None, "factor", {"number": 4, "variables": few}
    yield HOUSES, None, "ridge", {"formula": f"{y} ~ size + grade", "penalty": 0.1}
    yield HOUSES, None, "ridge", {"formula": f"{y} ~ 0 + size + grade", "penalty": 2}
    yield HOUSES, None, "ridge", {"formula": f"{y} ~ size", "penalty": 0}
    yield HOUSES, None, "lasso", {"formula": f"{y} ~ size + grade + lot + C(town)"}
    yield HOUSES, None, "lasso", {"formula": f"{y} ~ 0 + size"}
    yield (
        HOUSES,
        None,
        "select",
        {"response": y, "candidates": ["size", "grade", "lot", "C(town)", "near"]},
    )
    yield HOUSES, None, "select", {"response": "near", "candidates": None}
    yield HOUSES, None, "iv", {"formula": f"{y} ~ size + grade | lot + near + grade"}
    yield HOUSES, None, "iv", {"formula": f"{y} ~ size | C(town)"}
    yield HOUSES, None, "iv", {"formula": f"{y} ~ 0 + size + grade | lot + near"}
    yield HOUSES, None, "iv", {"formula": f"{y} ~ size"}
    yield HOUSES, None, "iv", {"formula": f"{y} ~ size | size + lot"}
    yield HOUSES, None, "mediation", {"x": "lot", "mediator": "size", "y": y, "controls": []}
    yield (
        HOUSES,
        None,
        "mediation",
        {"x": "near", "mediator": "size", "y": y, "controls": ["grade", "C(town)"]},
    )
    yield (
        HOUSES,
        None,
        "robustness",
        {
            "base": f"{y} ~ size",
            "variations": ["+ grade", "- size + size", "near ~ size"],
            "term": None,
        },
    )
    yield (
        HOUSES,
        None,
        "robustness",
        {"base": f"{y} ~ size + grade", "variations": ["- size"], "term": "size"},
    )
    yield (
        HOUSES,
        None,
        "robustness",
        {"base": f"{y} ~ size + grade", "variations": ["+ lot"], "term": "grade"},
    )
    for model in (
        f"big =~ size + grade + {y}; lot ~~ near",
        f"big =~ size + a*grade + {y}\nbig ~ b*lot + near; t := a*b^2 - 1 # a comment",
        (f"size ~ a*lot + near; grade ~ b*size; {y} ~ grade + c*size; ab := a*b; all := (ab + "
            "a*c)/2"),
        f"big =~ NA*size + u*grade + u*{y}; big ~~ 1*big; grade ~~ 0*lot; size ~~ near",
        "big =~ size + grade; big ~ lot", "big = size", "size ~ ", "big =~ 2*3*size", "size ~ 1",
        "size =~ grade + lot + near",
        "size ~ lot; size ~ lot", "size ~ a*lot; b := a*z", "size ~ lot; a == b", "size ~ 'a'*lot",
        "size ~ town", "b := 1",
        "f =~ size + grade; g =~ lot + near; f ~~ g; f ~ g",
    ):  # fmt: skip
        yield HOUSES, None, "sem", {"model": model, "std_lv": False}
    yield HOUSES, None, "sem", {"model": f"big =~ size + grade + {y}", "std_lv": True}
    yield HOUSES, None, "reliability", {"items": ["size", "grade", y]}
    yield HOUSES, None, "reliability", {"items": ["size", "grade"]}
    yield HOUSES, None, "reliability", {"items": ["size"]}
    yield "noisy", None, "reliability", {"items": ["size", "grade", y]}
    yield "bared", None, "sem", {"model": f"{y} ~ gains + size", "std_lv": False}
    yield "bared", None, "reliability", {"items": ["gains", "size", y]}
    yield HOUSES, None, "icc", {"raters": ["size", "grade", "lot"]}
    yield HOUSES, None, "icc", {"raters": ["size"]}
    yield HOUSES, None, "bland_altman", {"x": "size", "y": "grade"}
    yield "bared", None, "bland_altman", {"x": "size", "y": "gains"}
    yield HOUSES, None, "r2", {"formula": f"{y} ~ size + grade"}
    yield HOUSES, None, "r2", {"formula": f"{y} ~ 0 + size"}
    yield HOUSES, None, "twin", {"variables": [y, "size", "near"]}
    yield HOUSES, None, "main", {}
    yield HOUSES, None, "frame", {}
    yield from _in_groups(y)
    for formula in (
        f"{y} ~ size + I(size**2) + grade",
        f"{y} ~ size",
        f"{y} ~ grade + size - size",
    ):
        yield "noisy", None, ols, {"formula": formula}
    yield "noisy", None, "corr", {"variables": None}
    yield "noisy", None, "iv", {"formula": f"{y} ~ size | grade"}
    yield "noisy", None, "iv", {"formula": f"{y} ~ size | grade + I(size**2)"}
    yield "noisy", None, "main", {}
    yield "noisy", None, "pca", {"variables": None}
    for formula in (f"{y} ~ size + gains", f"{y} ~ size"):
        yield "bared", None, ols, {"formula": formula}
    yield "bared", None, "iv", {"formula": f"{y} ~ size | gains"}
    yield "bared", None, "iv", {"formula": f"{y} ~ size | lot"}
    yield "bared", None, "iv", {"formula": f"{y} ~ size + gains | lot + gains"}
    yield "bared", None, "corr", {"variables": None}
    for formula in (f"{y} ~ size + grade", f"{y} ~ size + missing(size)", f"{y} ~ grade"):
        yield "filled", None, ols, {"formula": formula}
    for name in r_studies.OF_PERSONS:
        yield from _of_persons(name)
    yield from _with_means()


def _with_means() -> Iterator[tuple[str, str | None, str, dict[str, Any]]]:
    for study, formula, constant in (
        ("means", "y ~ x0 + x1 + own", ["own"]), ("means", "y ~ x0", []), ("means", "y ~ 1", []),
        ("means", "y ~ own + x1", ["own"]), ("means", "y ~ 0 + x0", []),
        ("means", "y ~ x0 | x1", []), ("means", "y ~ x0 + own", []),
        ("means", "own ~ x0", ["own"]), ("means", "y ~ x0", ["nothing"]),
        ("means_noisy", "y ~ x0 + x1", []), ("persons", "y ~ x0 + x1", []),
        ("within", "y ~ x0", []), (HOUSES, "size ~ grade", []),
    ):  # fmt: skip
        yield study, None, "mixedlm", {"formula": formula, "constant": constant}


def _of_persons(name: str) -> Iterator[tuple[str, str | None, str, dict[str, Any]]]:
    for formula in ("y ~ x0 + x1", "x0 ~ x1", "y ~ 0 + x0"):
        yield name, None, "ols", {"formula": formula}
    yield name, None, "main", {}
    yield name, None, "corr", {"variables": None}
    yield name, None, "sem", {"model": "y ~ x0; x0 ~ x1", "std_lv": False}
    yield name, None, "iv", {"formula": "y ~ x0 | x1"}
    yield name, None, "lasso", {"formula": "y ~ x0 + x1"}
    yield name, None, "r2", {"formula": "y ~ x0 + x1"}
    yield name, None, "ridge", {"formula": "y ~ x0 + x1", "penalty": 0.1}
    yield name, None, "select", {"response": "y", "candidates": None}
    yield name, None, "frame", {}


def _in_groups(y: str) -> Iterator[tuple[str, str | None, str, dict[str, Any]]]:
    yield "groups", None, "ols", {"formula": f"{y} ~ size"}
    for level in ("a", "c"):
        yield "groups", level, "ols", {"formula": f"{y} ~ size + grade"}
        yield "groups", level, "corr", {"variables": None}
        yield "groups", level, "main", {}
        yield "groups", level, "frame", {}


def cases(releases: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each question with what Python answers."""
    found = []
    for name, group, analysis, arguments in asked():
        study = Study(releases[name])
        case: dict[str, Any] = {
            "study": name,
            "group": group,
            "analysis": analysis,
            "arguments": arguments,
        }
        try:
            one = study if group is None else study[group]
            case["result"] = plain_json(ANALYSES[analysis](one, **arguments))
        except (InvalidFormula, KeyError, NotEstimable, ValueError) as refusal:
            case["refusal"] = str(refusal.args[0])
        found.append(case)
    return found


def plain_json(value: Any) -> Any:
    """As JSON has it: lists, and null for NaN."""
    if isinstance(value, dict):
        return {key: plain_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(each) for each in value]
    if hasattr(value, "tolist"):
        return plain_json(value.tolist())
    return None if isinstance(value, float) and np.isnan(value) else value


def main() -> None:
    kept = json.loads(FIXTURE.read_text("utf-8"))["studies"] if FIXTURE.exists() else None
    studies = r_studies.releases()
    if kept is not None and "--studies" not in sys.argv[1:]:
        studies |= kept
    document = {"studies": studies, "cases": cases(studies)}
    FIXTURE.write_text(json.dumps(document, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
