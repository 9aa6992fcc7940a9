# SPDX-License-Identifier: Apache-2.0
"""patsy's spelling of a formula in the server's, and names of terms in patsy's."""

import re

from reticent._errors import NotPrivate

_QUOTED = re.compile(r"""\bQ\(\s*(["'])(.+?)\1\s*\)""")
_OTHER = re.compile(r"\b(?:np|numpy|scipy|math|pd)\.(?!(?:log1p|log10|log|sqrt|exp)\()\w+")
_LEVEL = re.compile(r"\[(?!(?:S|H)\.)([^\]]*)\]")


def of_patsy(formula: str) -> str:
    """Q("a b") as `a b`; the server reads np.log(x) and C(g, Treatment("b")) as they are. Raises
    NotPrivate for other functions.
    """
    text = _QUOTED.sub(r"`\2`", formula)
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
