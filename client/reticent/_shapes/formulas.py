# SPDX-License-Identifier: Apache-2.0
"""patsy's spelling of a formula in the server's, and names of terms in patsy's."""

import re

from reticent._errors import NotPrivate

_NUMPY = re.compile(r"\b(?:np|numpy)\.(log1p|log10|log|sqrt|exp)\b")
_TREATMENT = re.compile(
    r",\s*(?:reference\s*=|Treatment\(\s*(?:reference\s*=\s*)?)\s*([^)]+?)\s*\)?\)"
)
_QUOTED = re.compile(r"""\bQ\(\s*(["'])(.+?)\1\s*\)""")
_OTHER = re.compile(r"\b(?:np|numpy|scipy|math|pd)\.\w+")
_LEVEL = re.compile(r"\[(?!(?:S|H)\.)([^\]]*)\]")


def of_patsy(formula: str) -> str:
    """np.log(x), C(g, Treatment("b")) and Q("a b") as log(x), C(g, ref="b") and `a b`. Raises
    NotPrivate for other functions.
    """
    text = _QUOTED.sub(r"`\2`", _NUMPY.sub(r"\1", formula))
    text = _TREATMENT.sub(lambda found: f", ref={_as_text(found[1])})", text)
    other = _OTHER.search(text)
    if other:
        raise NotPrivate(
            f"{other[0]} is no function of a private formula: log, log1p, log10, sqrt, exp, "
            "poly, bs and I(x**2) are. Where the curator "
            "has declared a derived column, name it."
        )
    return text


def of_statsmodels(hypothesis: str) -> str:
    """A hypothesis about C(g)[T.b] as one about C(g)[b]."""
    return hypothesis.replace("[T.", "[")


def names_in_patsy(names: tuple[str, ...]) -> list[str]:
    """C(g)[b] as C(g)[T.b]; other codings are called alike."""
    return [_LEVEL.sub(r"[T.\1]", name) for name in names]


def _as_text(level: str) -> str:
    """A level in quotes: numbers are levels' names too."""
    return level if level[0] in "\"'" else f'"{level}"'
