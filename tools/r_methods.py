# SPDX-License-Identifier: Apache-2.0
"""Writes the R package's functions, one for each kind, from the questions of the server's kinds.

    make generated      writes r/R/kinds.R, r/NAMESPACE and r/man/<function>.Rd, which are checked
                        in; a test says when they are stale

A function has the name of its kind, or `private_` before it where base R has a function of that
name. Its first argument is a data set; the others are those of the Python client's method.
"""

import inspect
import re
import sys
from ast import literal_eval
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from client_methods import Parameter, parameters
from reticent_server.kinds import KINDS
from reticent_server.kinds.base import Kind

PACKAGE = Path(__file__).resolve().parents[1] / "r"
MASKED = frozenset({"anova", "glm", "mean", "median", "sum"})
"""Kinds whose names are functions of base R."""
CLIENT = (
    "brier_score",
    "budget",
    "cohens_kappa",
    "columns",
    "cox_zph",
    "dataset",
    "datasets",
    "density_test",
    "dynamic_effects",
    "fuzzy_effect",
    "group_differences",
    "heterogeneity",
    "honest_breakdown",
    "honest_did",
    "meta",
    "plan",
    "pool",
    "pooled",
    "predict_survival",
    "private_lm",
    "private_rlm",
    "protocol",
    "release",
    "released_tables",
    "reticent_client",
    "table_one",
    "table_one_tests",
)
STUDY = (
    "anderson_rubin",
    "first_stage",
    "study_bland_altman",
    "study_corr",
    "study_factor",
    "study_group",
    "study_groups",
    "study_icc",
    "study_iv",
    "study_lasso",
    "study_main",
    "study_mediation",
    "study_mixedlm",
    "study_ols",
    "study_partial_corr",
    "study_pca",
    "study_r2",
    "study_reliability",
    "study_ridge",
    "study_robustness",
    "study_select",
    "study_sem",
    "study_twin",
    "variance_components",
)
"""What is made of a released study for nothing."""
FURTHER = {"study": "study_ols, study_iv, study_corr, study_robustness"}
"""Pages about what can be done with a kind's answer."""
METHODS = {
    "reticent_client": ("print",),
    "reticent_dataset": ("as.data.frame", "names", "print", "stats::profile"),
    "reticent_plan": ("print",),
    "reticent_no_reply": ("print",),
    "reticent_release": ("as.data.frame", "print", "stats::nobs", "summary"),
    "reticent_fit": (
        "generics::glance",
        "generics::tidy",
        "graphics::plot",
        "print",
        "stats::anova",
        "stats::coef",
        "stats::confint",
        "stats::df.residual",
        "stats::fitted",
        "stats::formula",
        "stats::predict",
        "stats::residuals",
        "stats::update",
        "stats::vcov",
        "summary",
        "emmeans::emm_basis",
        "emmeans::recover_data",
        "ggplot2::autoplot",
        "marginaleffects::get_coef",
        "marginaleffects::get_predict",
        "marginaleffects::get_vcov",
        "marginaleffects::set_coef",
    ),
    "reticent_several": (
        "generics::glance",
        "generics::tidy",
        "graphics::plot",
        "stats::coef",
        "stats::confint",
        "stats::predict",
        "stats::vcov",
        "summary",
    ),
    "summary.reticent_several": ("print",),
    "reticent_survival_curve": ("graphics::plot", "print", "ggplot2::autoplot"),
    "reticent_cumulative_incidence": (
        "as.data.frame",
        "graphics::plot",
        "print",
        "ggplot2::autoplot",
    ),
    "reticent_hazard_regression": ("ggplot2::autoplot", "summary"),
    "summary.reticent_hazard_regression": ("print",),
    "reticent_predicted_survival": ("ggplot2::autoplot", "graphics::plot"),
    "reticent_cox_zph": ("as.data.frame", "ggplot2::autoplot", "graphics::plot", "print"),
    "summary.reticent_fit": ("print",),
    "reticent_study": ("as.data.frame", "graphics::plot", "print"),
    "reticent_pooled": ("print",),
    "reticent_protocol": ("print",),
    "reticent_meta": ("as.data.frame", "graphics::plot", "print", "stats::confint"),
    "reticent_study_agreement": ("print", "stats::confint"),
    "reticent_study_corr": ("as.data.frame", "as.matrix", "graphics::plot", "print"),
    "reticent_study_factor": ("print",),
    "reticent_study_lasso": ("as.data.frame", "graphics::plot", "print", "stats::coef"),
    "reticent_study_mediation": (
        "as.data.frame",
        "graphics::plot",
        "print",
        "stats::coef",
        "stats::confint",
    ),
    "reticent_study_mixedlm": ("print",),
    "reticent_study_pair": ("print", "stats::confint"),
    "reticent_study_pca": ("graphics::plot", "print"),
    "reticent_study_reliability": ("print", "stats::confint"),
    "reticent_study_robustness": ("as.data.frame", "graphics::plot", "print"),
    "reticent_study_sem": (
        "as.data.frame",
        "graphics::plot",
        "print",
        "stats::coef",
        "stats::confint",
    ),
}
_HEAD = (
    "# SPDX-License-Identifier: Apache-2.0\n# One function for each kind. Made by "
    "tools/r_methods.py from the server's questions.\n"
)
_BY_FORMULA = frozenset({"by", "event", "group"})
"""What a formula in the place before it can say: age ~ sex, Surv(time, event) ~ group. The server
asks for what is missing.
"""
_WORDS = {"None": "NULL", "True": "TRUE", "False": "FALSE"}
_SPOKEN = re.compile(r"\b(?:None|True|False)\b")


def name_of(kind: Kind[Any]) -> str:
    return f"private_{kind.name}" if kind.name in MASKED else kind.name


def spelled(value: object) -> str:
    """A default as R writes it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case list() | tuple():
            return f"c({', '.join(map(spelled, value))})"
        case str():
            return f'"{value}"'
        case _:
            return repr(value)


def argument(parameter: Parameter) -> str:
    if parameter.default is None:
        return f"{parameter.name} = NULL" if parameter.name in _BY_FORMULA else parameter.name
    return f"{parameter.name} = {spelled(literal_eval(parameter.default))}"


def arguments(kind: Kind[Any]) -> list[str]:
    found = parameters(kind.query)
    by_place = [argument(p) for p in found if not p.keyword]
    by_name = [argument(p) for p in found if p.keyword]
    privacy = ["epsilon", "delta = NULL"]
    return ["dataset", *by_place, *privacy, *by_name, "idempotency_key = NULL"]


def function(kind: Kind[Any]) -> str:
    """The source of a kind's function."""
    found = parameters(kind.query)
    several = [f'"{p.name}"' for p in found if p.check.startswith("several(")]
    lists = f", c({', '.join(several)})" if several else ""
    fields = ", ".join(f"{p.name} = {p.name}" for p in found)
    return (
        f"\n{name_of(kind)} <- function({', '.join(arguments(kind))}) {{\n"
        f"  fields <- list({fields})\n"
        f'  ask(dataset, "{kind.name}", fields, epsilon, delta, idempotency_key{lists})\n'
        "}\n"
    )


def rd(text: str) -> str:
    """A text as Rd has it: R's words, code in \\code."""
    text = _SPOKEN.sub(lambda word: _WORDS[word[0]], " ".join(text.split()))
    text = re.sub(r"([\\%{}])", r"\\\1", text)
    return re.sub(r"`([^`]*)`", r"\\code{\1}", text)


def page(kind: Kind[Any]) -> str:
    """The Rd page of a kind's function."""
    first, *rest = (inspect.getdoc(kind.query) or "").split("\n\n")
    title = rd(first.split(". ")[0].rstrip("."))
    told = {
        "dataset": "A data set, from \\code{\\link{dataset}}.",
        **{
            p.name: f"{rd(p.told)}." if p.told else "See the description."
            for p in parameters(kind.query)
        },
        "epsilon": "What the answer may cost: one positive number.",
        "delta": "The probability with which the guarantee may fail; NULL: the policy's default.",
        "idempotency_key": (
            "A text; the same one gives the same release again, without a second charge."
        ),
    }
    items = "\n".join(f"  \\item{{{name}}}{{{text}}}" for name, text in told.items())
    description = " ".join(rd(each) for each in (first, *rest))
    called = re.sub(r"%", r"\\%", ", ".join(arguments(kind)))
    return (
        "% Made by tools/r_methods.py.\n"
        f"\\name{{{name_of(kind)}}}\n\\alias{{{name_of(kind)}}}\n\\title{{{title}}}\n"
        f"\\description{{{description}}}\n"
        f"\\usage{{\n{name_of(kind)}({_wrapped(called)})\n}}\n"
        f"\\arguments{{\n{items}\n}}\n"
        "\\value{A release: see \\code{\\link{release}}.}\n"
        "\\details{The answer is charged when it is asked for, each time.}\n"
        f"{_further(kind)}"
    )


def _further(kind: Kind[Any]) -> str:
    pages = FURTHER.get(kind.name)
    if pages is None:
        return ""
    links = ", ".join(f"\\code{{\\link{{{name}}}}}" for name in pages.split(", "))
    return f"\\seealso{{What is free from then on: {links}.}}\n"


def _wrapped(called: str) -> str:
    """The arguments, a line each where they are long: R's check wants lines of at most 90
    characters.
    """
    return (
        called
        if len(called) < 60
        else "\n  " + called.replace(", ", ",\n  ").replace("c(\n  ", "c(")
    )


def namespace() -> str:
    kinds = [name_of(kind) for kind in _kinds()]
    exports = "".join(f"export({name})\n" for name in sorted([*CLIENT, *STUDY, *kinds]))
    methods = "".join(
        f"S3method({generic}, {of})\n" for of, generics in METHODS.items() for generic in generics
    )
    return f"# Made by tools/r_methods.py.\n{exports}{methods}"


def _kinds() -> list[Kind[Any]]:
    return [kind for kind in KINDS if kind.for_analysts]


def files() -> dict[Path, str]:
    """Every generated file of the package with its text."""
    functions = _HEAD + "".join(function(kind) for kind in _kinds())
    pages = {PACKAGE / f"man/{name_of(kind)}.Rd": page(kind) for kind in _kinds()}
    return {PACKAGE / "R/kinds.R": functions, PACKAGE / "NAMESPACE": namespace()} | pages


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, "utf-8")
