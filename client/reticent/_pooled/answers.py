# SPDX-License-Identifier: Apache-2.0
"""Whether what a site answered is an answer to what it was asked, and can be added to others.

A site may be wrong or hostile. What can be seen from its answer alone is refused here with a
sentence that names the site; numbers that are made up and well formed cannot be seen, and
heterogeneity shows crude ones.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reticent._errors import InvalidQuery, NotEstimable, UnexpectedReply
from reticent._study.moments import FloatArray, Moments
from reticent.kinds.study import Study

_ASYMMETRY = 1e-6
"""Of moments in standardised columns, whose entries are about 1: rounding leaves ten digits."""
_MOST_RECORDS = 2**53
"""Above it a number of records is no exact float, and no table has as many."""
_NOISE = 6.0
"""Times the typical size of the noise by which an eigenvalue of a Gram matrix may be below 0: a
Gaussian matrix is as far from its typical size once in 10⁶ releases at most (Tropp 2015, 4.1)."""
_SAME = ("where", "missing", "by", "effects", "persons", "weights")
_USUAL: Mapping[str, Any] = {
    "kind": "study",
    "main": None,
    "where": None,
    "by": None,
    "effects": None,
    "persons": None,
    "missing": "mask",
}
"""What a study says of itself where it was not asked otherwise."""


def require_addable(site: str, study: Any) -> None:
    """Raises InvalidQuery for what is no study with a reply, or a study that has no sum with
    others; UnexpectedReply for numbers that are none."""
    if not isinstance(study, Study):
        raise InvalidQuery(f"{site}: that is no study with a reply, and is not in the pool.")
    n = study.result.get("n")
    if type(n) is not int or not 1 <= n <= _MOST_RECORDS:
        raise UnexpectedReply(f"{site}: its number of records is none; it is not in the pool.")
    if study.result.get("groups"):
        raise InvalidQuery(f"{site}: that study is by groups: take one, such as study['a'].")
    if any(str(term).startswith("missing(") for term in study.result["terms"]):
        raise InvalidQuery(
            f'{site}: missing="indicator" fills cells with a value of the site\'s own: ask for '
            'missing="mask".'
        )
    said = _unsound(study._moments)  # noqa: SLF001 - a study of this package
    if said:
        raise UnexpectedReply(f"{site}: {said}; it is not in the pool.")


def require_asked(
    site: str, study: Any, question: Mapping[str, Any], epsilon: float, n: int
) -> None:
    """Raises UnexpectedReply where a site answered another question, was charged more than was
    agreed, or has another number of records than its data set says. n: of the data set.
    """
    if not isinstance(study, Study):
        raise NotEstimable(
            f"{site}: no reply. It was charged. The others' answers are kept by their servers; "
            "reticent.pool adds them without this site."
        )
    asked = {**_USUAL, **question}
    other = [name for name in asked if _plain(study.query.get(name)) != _plain(asked[name])]
    if other:
        named = ", ".join(sorted(other))
        raise UnexpectedReply(f"{site}: it answered another question, in {named}.")
    charged = study.charged.epsilon
    if charged is not None and not 0 <= charged <= epsilon * (1 + 1e-9):  # decimal rounding
        raise UnexpectedReply(f"{site}: it charged another epsilon than was agreed.")
    if study.nobs != n:
        raise UnexpectedReply(f"{site}: it answered about another number of records than it has.")


def require_one_question(studies: Mapping[str, Study]) -> None:
    """Studies that are added were asked of alike records, of columns that mean the same: `where`,
    `missing`, weights and units do not differ, nor do the terms of a variable that several have.
    Raises InvalidQuery, which names what differs.
    """
    (first, known), *others = studies.items()
    for site, study in others:
        asked = [{**_USUAL, **each.query} for each in (known, study)]
        differs = [x for x in _SAME if _plain(asked[0].get(x)) != _plain(asked[1].get(x))]
        made = [dict(each.result.get("variables") or {}) for each in (known, study)]
        differs += [x for x in made[0] if x in made[1] and made[0][x] != made[1][x]]
        if differs:
            raise InvalidQuery(
                f"{first} and {site} differ in {', '.join(differs)}: their studies are about "
                "different records or columns, and have no sum. Ask both the same."
            )


def require_same_columns(studies: Mapping[str, Study], questions: Mapping[str, Any]) -> None:
    """Sites of one question answer with the same columns. Raises UnexpectedReply."""
    first: dict[str, tuple[str, Sequence[Any]]] = {}
    for site, study in studies.items():
        key, terms = str(questions[site]["variables"]), study.result["terms"]
        other, theirs = first.setdefault(key, (site, terms))
        if list(terms) != list(theirs):
            raise UnexpectedReply(
                f"{other} and {site} answered one question with other columns: one of them does "
                "not do what was agreed."
            )


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, list | tuple) else value


def _unsound(moments: Moments) -> str:
    """What is wrong with the numbers themselves; empty where nothing is."""
    q = len(moments.names)
    narrow = moments.narrow
    inner: list[FloatArray] = []
    if narrow is not None:
        inner = [narrow.sums, narrow.root, np.array([narrow.sd, narrow.ratio, narrow.typical])]
    lost = np.zeros(q) if moments.lost is None else moments.lost
    plain = [moments.sums, moments.root, moments.centres, moments.scales, lost]
    scalars = np.array([moments.sd, moments.n, moments.stretch])
    if not all(np.isfinite(part).all() for part in (*plain, *inner, scalars)):
        return "its answer has numbers that are not finite"
    vectors = (moments.centres, moments.scales, lost)
    matrices = (moments.sums, moments.root, *inner[:2])
    if any(v.shape != (q,) for v in vectors) or any(m.shape[1:] != (q,) for m in matrices):
        return "its answer has moments of another shape than its columns"
    if moments.sd < 0 or moments.n < 1 or (moments.scales <= 0).any():
        return "its answer has a scale, a noise or a number of records that cannot be"
    if np.abs(moments.sums - moments.sums.T).max() > _ASYMMETRY * np.abs(moments.sums).max():
        return "its moments are not symmetric"
    lowest = float(np.linalg.eigvalsh((moments.sums + moments.sums.T) / 2)[0])
    rounding = _ASYMMETRY * float(np.abs(moments.sums).max())
    if lowest < -_NOISE * moments.norm(np.eye(q)) - rounding:
        return "its moments are of no table: a combination of columns has a negative mean square"
    return ""
