# SPDX-License-Identifier: Apache-2.0
"""Several fits side by side: a table in the form that journals print, differences, and a plot."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from os import PathLike
from typing import Any

import numpy as np
from scipy.special import ndtri

from reticent import _optional
from reticent._drawing import axes_of
from reticent._latex import escaped
from reticent._text import Text, html_table, number, text_table
from reticent.results.coefficient_plot import INTERCEPT
from reticent.results.coefficients import Coefficients
from reticent.results.effects import Effects

Fits = Sequence[Coefficients] | Mapping[str, Coefficients]
_STARS = ((0.01, "***"), (0.05, "**"), (0.1, "*"))
"""p-values below which a coefficient has stars: the habit of economics journals."""
_NOTE = "Standard errors in parentheses count sampling and privacy noise."
_STARS_NOTE = "* p < 0.1, ** p < 0.05, *** p < 0.01."
_SPREAD = 0.6
"""Share of a row's height over which the fits of one coefficient are spread."""


@dataclass(frozen=True, slots=True, repr=False)
class FitTable:
    """Texts of a table: a header, rows and notes; shows itself in terminals and notebooks.

    >>> fit = ds.linear_regression("price ~ sqft_living + grade", epsilon=1.0)
    >>> reticent.table({"robust": fit}).markdown()
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]

    def text(self) -> Text:
        """Plain text."""
        return Text("\n".join([*text_table(self.header, self.rows), *self.notes]))

    def html(self) -> str:
        """An HTML table."""
        said = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return html_table(self.header, self.rows) + said

    def markdown(self) -> str:
        """A Markdown table."""
        lines = [self.header, ("---", *["---:"] * (len(self.header) - 1)), *self.rows]
        cells = [[cell.replace("|", r"\|").replace("*", r"\*") for cell in line] for line in lines]
        table = "\n".join(f"| {' | '.join(line)} |" for line in cells)
        return "\n\n".join([table, *(note.replace("*", r"\*") for note in self.notes)]) + "\n"

    def latex(self) -> str:
        """A LaTeX tabular with the rules of the package booktabs."""
        lines = [_tex(self.header), r"\midrule", *map(_tex, self.rows)]
        foot = [
            rf"\multicolumn{{{len(self.header)}}}{{l}}{{\footnotesize {escaped(note)}}} \\"
            for note in self.notes
        ]
        columns = "l" + "r" * (len(self.header) - 1)
        start, end = rf"\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
        return "\n".join([start, r"\toprule", *lines, r"\bottomrule", *foot, end, ""])

    def docx(self, path: str | PathLike[str]) -> None:
        """Writes a Word document; needs python-docx."""
        document = _optional.docx().Document()
        cells = [self.header, *self.rows]
        table = document.add_table(rows=len(cells), cols=len(self.header))
        for row, texts in zip(table.rows, cells, strict=True):
            for cell, text in zip(row.cells, texts, strict=True):
                cell.text = text
        for note in self.notes:
            document.add_paragraph(note)
        document.save(str(path))

    def __repr__(self) -> str:
        return str(self.text())

    def _repr_html_(self) -> str:
        return self.html()


def table(fits: Fits, *, exp: bool = False, stars: bool = True) -> FitTable:
    """Coefficients of several fits, standard errors in parentheses below, and records, scales and
    charges.

    fits: a sequence, or a mapping from the columns' titles. exp: exponentials (odds ratios, rate
    ratios), with standard errors by the delta method. What is not identifiable has a dash. Costs
    nothing.

    >>> fit = ds.linear_regression("price ~ sqft_living + grade", epsilon=1.0)
    >>> print(reticent.table([fit]).latex())
    """
    named = _named(fits)
    rows: list[tuple[str, ...]] = []
    for term in _terms(named):
        cells = [_cells(fit, term, exp=exp, stars=stars) for fit in named.values()]
        rows += [(term, *(a for a, _ in cells)), ("", *(b for _, b in cells))]
    rows.append(("Records", *(f"{fit.nobs:,}" for fit in named.values())))
    rows.append(("Residual scale", *(number(fit.scale) for fit in named.values())))
    rows.append(("Charged", *(str(fit.charged) for fit in named.values())))
    said = [_NOTE, *([_STARS_NOTE] if stars else []), "–: not identifiable at this privacy level."]
    return FitTable(("", *named), tuple(rows), tuple(said))


def compare(fit1: Coefficients, fit2: Coefficients, *, independent: bool = False) -> Effects:
    """Differences of the coefficients that two fits share, the second's less the first's. Costs
    nothing.

    Fits on the same records are correlated, and by how much no release says: the standard error is
    the sum of the two, which holds for any correlation. independent: for disjoint records (such as
    two groups): the root of the sum of squares.

    >>> fit = ds.linear_regression("price ~ sqft_living", epsilon=1.0)
    >>> more = ds.linear_regression("price ~ sqft_living + grade", epsilon=1.0)
    >>> reticent.compare(fit, more).conf_int()
    """
    shared = [name for name in fit1.names if name in fit2.names]
    if not shared:
        raise ValueError("the fits share no coefficient")
    one, two = _picked(fit1, shared), _picked(fit2, shared)
    se = np.hypot(one[1], two[1]) if independent else one[1] + two[1]
    ok = one[2] & two[2] & np.isfinite(se)
    covariance = np.where(
        np.eye(len(shared), dtype=bool), se**2, np.nan if not independent else 0.0
    )
    assumed = "for disjoint records" if independent else "for any correlation of the two"
    return Effects(
        tuple(shared),
        np.where(ok, two[0] - one[0], np.nan),
        np.where(ok[:, None] & ok, covariance, np.nan),
        tuple(map(bool, ok)),
        1.0,
        f"Differences of coefficients (second fit less first); standard errors {assumed}.",
    )


def plot_fits(fits: Fits, terms: Sequence[str] | None = None, ax: Any = None) -> Any:
    """Coefficients of several fits with 95 % intervals, one row a term; needs matplotlib, gives the
    Axes.

    terms: which, and in which order; all but the intercept without. What is not identifiable is not
    drawn.

    >>> fit = ds.linear_regression("price ~ sqft_living + grade", epsilon=1.0)
    >>> axes = reticent.plot_fits({"all": fit})
    """
    named, axes = _named(fits), axes_of(ax)
    shown = [t for t in _terms(named) if t != INTERCEPT] if terms is None else list(terms)
    for k, (title, fit) in enumerate(named.items()):
        shift = _SPREAD * ((k + 0.5) / len(named) - 0.5)
        places = [
            i for i, t in enumerate(shown) if t in fit.names and fit.estimable[fit.names.index(t)]
        ]
        which = [fit.names.index(shown[i]) for i in places]
        values, ends = np.asarray(fit.params)[which], fit.conf_int()[which]
        errors = np.abs(ends - values[:, None]).T
        axes.errorbar(
            values, np.array(places) + shift, xerr=errors, fmt="o", capsize=2, label=title
        )
    axes.axvline(0.0, color="black", linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(shown)), shown)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xlabel("coefficient, 95 % interval")
    axes.legend()
    return axes


def _named(fits: Fits) -> dict[str, Coefficients]:
    named = (
        dict(fits) if isinstance(fits, Mapping) else {f"({k})": f for k, f in enumerate(fits, 1)}
    )
    if not named:
        raise ValueError("give one fit at least")
    return named


def _terms(named: Mapping[str, Coefficients]) -> list[str]:
    """Terms in the order of the fits, the intercept last."""
    terms = dict.fromkeys(name for fit in named.values() for name in fit.names)
    return sorted(terms, key=lambda name: name == INTERCEPT)


def _cells(fit: Coefficients, term: str, *, exp: bool, stars: bool) -> tuple[str, str]:
    if term not in fit.names:
        return "", ""
    i = fit.names.index(term)
    value, se, p = float(fit.params[i]), float(fit.bse[i]), float(fit.pvalues[i])
    if not fit.estimable[i] or not np.isfinite([value, se]).all():
        return "–", ""
    mark = next((s for level, s in _STARS if p < level), "") if stars else ""
    if exp:
        value, se = float(np.exp(value)), float(np.exp(value)) * se
    return number(value) + mark, f"({number(se)})"


def _picked(fit: Coefficients, names: Sequence[str]) -> tuple[Any, Any, Any]:
    """(k,) coefficients, standard errors as wide as the released intervals, and flags."""
    which = [fit.names.index(name) for name in names]
    ends = fit.conf_int()[which]
    z = float(ndtri(0.975))
    wide = np.fmax(np.asarray(fit.bse)[which], (ends[:, 1] - ends[:, 0]) / (2 * z))
    return np.asarray(fit.params)[which], wide, np.array(fit.estimable)[which]


def _tex(cells: Sequence[str]) -> str:
    return " & ".join(map(escaped, cells)) + r" \\"
