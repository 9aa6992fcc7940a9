# SPDX-License-Identifier: Apache-2.0
"""Tables as LaTeX: each character is one that LaTeX prints as it is, and pdflatex reads them."""

from pathlib import Path

import pytest

import reticent
from reticent._latex import escaped
from reticent.results.several import FitTable
from support.client.replying_server import release
from support.processes import latex

ODD = (
    "a & b", "50 % of $5", "#1 {x_2}", "~ ^ \\\\ \\n", "p < 0.1 > 0", "a|b", '5" pipe',
    "[0.1, 0.2)",
    "*** p", "ε = 1, δ = 10⁻⁶, ρ = .5",
    "χ² ≤ 3 × 10⁴ ± σ", "−0.5 – 2", "Δ ≥ √2·∞", "Müller, Łódź, façade",
    "1\N{NO-BREAK SPACE}%", "α → β ≠ µ", "x₁ ≈ 2°", "…",
)  # fmt: skip


def test_what_latex_takes_for_a_command_is_escaped() -> None:
    assert escaped("ε = 1, p < 0.1") == r"$\varepsilon$ = 1, p $<$ 0.1"
    assert escaped("δ & ρ_1 − 50 %") == r"$\delta$ \& $\rho$\_1 $-$ 50 \%"
    assert escaped("[0, 1]") == "{}[0, 1]"
    assert escaped("***") == "{}***"
    assert escaped("0.5***") == "0.5***"
    known = {c for text in ODD for c in text if not c.isalnum() and not c.isascii()}
    assert all(escaped(c).isascii() for c in known)


@pytest.mark.slow
def test_pdflatex_reads_tables(tmp_path: Path) -> None:
    rows = tuple((text, text) for text in ODD)
    table = FitTable(("", "ε & co"), rows, ("* p < 0.1, ** p < 0.05.", "[notes] ρ"))
    fits = reticent.table([reticent.RegressionResults(release())])
    assert r"\varepsilon" in fits.latex()
    latex.compiled(table.latex() + "\n\n" + fits.latex(), tmp_path)
