# SPDX-License-Identifier: Apache-2.0
"""The text of fitted coefficients: the table, and in words what the noise has done to it."""

import numpy as np

from reticent._text import number, paragraph, plain, probability, text_table
from reticent.results.coefficients import Coefficients

# From here on the privacy noise, not the data, decides how wide an interval is.
NOISY = 3.0
HEADER = ("", "coef", "std err", "privacy", "sampling", "z", "P>|z|", "[0.025", "0.975]")
EXP_HEADER = ("", "exp(coef)", "std err", "z", "P>|z|", "[0.025", "0.975]")


def summary_lines(
    fit: Coefficients, headline: list[str], footer: list[str], *, exp: bool = False
) -> list[str]:
    """Lines of the summary."""
    table = text_table(*coefficient_cells(fit, exp=exp))
    rule = "=" * len(table[0])
    persons = (fit.clusters is not None and fit.cluster is None) or "persons" in fit.result
    records = f"{'Persons' if persons else 'Records'}: {fit.nobs:,}"
    own = ["person effects"] if fit.result.get("effects") else []
    facts = "   ".join([records, *own, *_model_facts(fit)])
    return [*headline, facts, *_clusters(fit), rule, *table, rule, *notes(fit), "", *footer]


def _clusters(fit: Coefficients) -> list[str]:
    """Whose scores were summed, and the degrees of freedom that leaves."""
    if fit.clusters is None or fit.effective_clusters is None or fit.df_resid is None:
        return []
    known = [each for each in np.ravel(fit.df_resid) if np.isfinite(each)]
    least, most = (round(f(known, default=0.0)) for f in (min, max))
    freedom = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    freedom = freedom if known else "not known"
    what = (
        "persons with a row in use"
        if fit.cluster is None
        else f"levels of {fit.cluster} with records"
    )
    seen = f"Clusters: {fit.clusters:,.0f} {what} (noisy)"
    return [
        f"{seen}   effective: {fit.effective_clusters:,.0f}   degrees of freedom: {freedom}",
    ]


def notes(fit: Coefficients) -> list[str]:
    """What stands below the table: what the columns mean, the estimand, warnings."""
    lines = paragraph(
        "std err counts sampling and privacy noise; the columns privacy and sampling are its parts."
    )
    if estimand := fit.result.get("estimand"):
        lines += paragraph(f"Estimand: {estimand}")
    released = [*map(str, fit.result.get("warnings") or ())]
    said = any(warning.startswith(_LOST) for warning in released)
    own = [warning for warning in warnings(fit) if not (said and warning.startswith(_LOST))]
    for warning in [*released, *own]:
        lines += paragraph(warning, "- ")
    return lines


def _model_facts(fit: Coefficients) -> list[str]:
    """Family, scale and tuning constant, where there are any."""
    cut = f"c = {plain(fit.tuning)}" if np.isfinite(fit.tuning) else "no cut of residuals"
    family, statistics = fit.result.get("family"), fit.result.get("statistics") or {}
    rsquared = statistics.get("rsquared")
    described = [] if rsquared is None else [f"R-squared: {number(rsquared)}"]
    if family is None:
        return [f"Residual scale: {number(fit.scale)}", cut, *described]
    scale = [f"Scale: {number(fit.scale)}"] if np.isfinite(fit.scale) else []
    return [f"Family: {family}", *scale, *_dispersion(fit), cut, *described]


def _dispersion(fit: Coefficients) -> list[str]:
    """α of a negative binomial, with its interval where it was estimated."""
    value, ends = fit.result.get("dispersion"), fit.result.get("dispersion_interval")
    if value is None:
        return []
    between = "" if ends is None else f" [{number(ends[0])}, {number(ends[1])}]"
    return [f"Dispersion: {number(value)}{between}"]


def coefficient_cells(
    fit: Coefficients, *, exp: bool
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """(header, rows) of the table; exp: of the exponentials."""
    return (EXP_HEADER, ratio_rows(fit)) if exp else (HEADER, coefficient_rows(fit))


def coefficient_rows(fit: Coefficients) -> list[tuple[str, ...]]:
    """One row of texts for each coefficient."""
    numbers = zip(
        fit.params.tolist(),
        fit.bse.tolist(),
        fit.privacy_bse.tolist(),
        fit.sampling_bse.tolist(),
        fit.tvalues.tolist(),
        fit.pvalues.tolist(),
        fit.conf_int().tolist(),
        strict=True,
    )
    rows = []
    for name, ok, values in zip(fit.names, fit.estimable, numbers, strict=True):
        coef, bse, privacy, sampling, z, p, (lower, upper) = values
        parts = map(number, (coef, bse, privacy, sampling))
        if not ok:
            # No error, no z and no interval: they would be read as a finding.
            why = "a first look" if name in fit.first_look else "not identifiable"
            rows.append((f"{name} ({why})", number(coef), *["–"] * 7))
            continue
        z_text = f"{z:.2f}" if np.isfinite(z) else "–"
        rows.append((name, *parts, z_text, probability(p), number(lower), number(upper)))
    return rows


def ratio_rows(fit: Coefficients) -> list[tuple[str, ...]]:
    """One row of texts for each exponential; its standard error is the delta method's."""
    ratios, ends = np.exp(np.asarray(fit.params)), fit.conf_int(exp=True)
    rows = []
    for i, name in enumerate(fit.names):
        if not fit.estimable[i]:
            rows.append((f"{name} (not identifiable)", *["–"] * 6))
            continue
        parts = map(number, (ratios[i], ratios[i] * fit.bse[i]))
        z, p = f"{fit.tvalues[i]:.2f}", probability(fit.pvalues[i])
        rows.append((name, *parts, z, p, *map(number, ends[i])))
    return rows


def warnings(fit: Coefficients) -> list[str]:
    """Sentences about coefficients whose interval the noise has made useless: one for all that it
    has befallen alike.
    """
    befallen: dict[str, list[str]] = {}
    for i, name in enumerate(fit.names):
        befallen.setdefault(_verdict(fit, i), []).append(name)
    return [
        sentence.format(names=", ".join(_labelled(fit, names)))
        for verdict, sentence in _SENTENCES.items()
        if (names := befallen.get(verdict))
    ]


_LOST = "Not identifiable at this epsilon"
_SENTENCES = {
    "lost": f"{_LOST}: {{names}}. The data's information about them is below the noise. Do not "
    "interpret their values. Use a larger epsilon or fewer terms, or merge rare levels.",
    "unknown": "No standard error at this epsilon: {names}.",
    "useless": (
        "Useless intervals, made of privacy noise and holding both signs: {names}. Use a larger "
        "epsilon, more records or fewer terms."
    ),
    "noisy": "Intervals that are mostly privacy noise: {names}.",
}
"""What is said of each verdict; in brackets how many times as wide as sampling alone would make an
interval.
"""


def _verdict(fit: Coefficients, i: int) -> str:
    """What the noise has done to a coefficient; empty: little."""
    bse, privacy, sampling = (float(v[i]) for v in (fit.bse, fit.privacy_bse, fit.sampling_bse))
    lower, upper = fit.conf_int()[i]
    if fit.names[i] in fit.first_look:
        return ""
    if not fit.estimable[i]:
        return "lost"
    if not np.isfinite([fit.params[i], bse, privacy]).all():
        return "unknown"
    if privacy <= NOISY * sampling:
        return ""
    return "useless" if lower <= 0 <= upper else "noisy"


def _labelled(fit: Coefficients, names: list[str]) -> list[str]:
    """Names, with how wide an interval is where the noise is what makes it so."""
    found = []
    for name in names:
        i = list(fit.names).index(name)
        wide = _verdict(fit, i) in {"useless", "noisy"}
        found.append(
            f"{name} ({_times(float(fit.bse[i]), float(fit.sampling_bse[i]))})" if wide else name
        )
    return found


def _times(bse: float, sampling: float) -> str:
    return f"{bse / sampling:.1f}×" if sampling > 0 else "sampling error estimated as 0"
