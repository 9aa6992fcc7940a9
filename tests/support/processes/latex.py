# SPDX-License-Identifier: Apache-2.0
"""pdflatex, which reads what is exported as LaTeX.

Where it is missing, its tests are skipped, and the end of the run says so in words that cannot be
overlooked (`pytest_terminal_summary`, for tests/conftest.py).
"""

import shutil
import subprocess
from pathlib import Path

import pytest

DEBIAN = "texlive-latex-base"
SECONDS = 600.0
"""After which it hangs: a page takes one second, the rest is for a busy machine."""
_HEAD = r"""\documentclass{article}
\IfFileExists{booktabs.sty}{\usepackage{booktabs}}{%
  \let\toprule\hline\let\midrule\hline\let\bottomrule\hline}
\begin{document}
"""


def installed() -> bool:
    """Whether pdflatex is there."""
    return shutil.which("pdflatex") is not None


def compiled(body: str, folder: Path) -> str:
    """Makes a document of the body and gives pdflatex's log; fails where it stops or lacks a
    character. Skips where pdflatex is missing."""
    if not installed():
        pytest.skip("no pdflatex")
    (folder / "page.tex").write_text(_HEAD + body + "\n\\end{document}\n", "utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "page.tex"],
        cwd=folder, capture_output=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    log = done.stdout.decode("utf-8", "replace")
    assert done.returncode == 0, log[-2000:]
    assert "Missing character" not in log, log[-2000:]
    return log


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not installed():
        terminalreporter.section("LaTeX exports were NOT compiled", sep="!", red=True, bold=True)
        terminalreporter.line(
            "pdflatex was not found, so nothing has read the tables and releases that are exported "
            f"as LaTeX. Install it (on Debian: apt-get install {DEBIAN}) before trusting this run."
        )
