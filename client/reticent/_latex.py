# SPDX-License-Identifier: Apache-2.0
"""Texts in LaTeX, as any engine with its usual fonts reads them (pdflatex among them)."""

_GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "varepsilon", "ζ": "zeta",
    "η": "eta", "θ": "theta", "κ": "kappa", "λ": "lambda", "μ": "mu", "µ": "mu", "ν": "nu",
    "ξ": "xi", "π": "pi", "ρ": "rho", "σ": "sigma", "τ": "tau", "φ": "varphi", "χ": "chi",
    "ψ": "psi", "ω": "omega", "Γ": "Gamma", "Δ": "Delta", "Θ": "Theta", "Λ": "Lambda", "Π": "Pi",
    "Σ": "Sigma", "Φ": "Phi", "Ψ": "Psi", "Ω": "Omega",
}  # fmt: skip
_SIGNS = {
    "<": "<", ">": ">", "|": "|", "−": "-", "×": r"\times", "·": r"\cdot", "±": r"\pm",
    "≤": r"\le", "≥": r"\ge", "≠": r"\ne", "≈": r"\approx", "∞": r"\infty", "√": r"\surd",
    "→": r"\to", "←": r"\leftarrow", "∈": r"\in", "°": r"^\circ", "½": r"\frac12",
    "∑": r"\sum", "∏": r"\prod", "′": "'", "ᵀ": "^T", "⁻": "^-",
    **{c: f"^{k}" for k, c in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    **{c: f"_{k}" for k, c in enumerate("₀₁₂₃₄₅₆₇₈₉")},
}  # fmt: skip
_TEXT = {
    **{c: f"\\{c}" for c in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    '"': "''",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "\N{NO-BREAK SPACE}": "~",
    "\N{NARROW NO-BREAK SPACE}": r"\,",
    "\N{THIN SPACE}": r"\,",
    **{c: f"$\\{name}$" for c, name in _GREEK.items()},
    **{c: f"${said}$" for c, said in _SIGNS.items()},
}


def escaped(text: str) -> str:
    """The text as LaTeX prints it. Letters of other alphabets than Latin and Greek stay: they need
    a font that has them."""
    said = "".join(_TEXT.get(character, character) for character in text)
    return f"{{}}{said}" if said[:1] in {"[", "*"} else said  # not an option of the \\\\ before
