# SPDX-License-Identifier: Apache-2.0
"""Studies of several sites on one desk: the client's pooled study of releases that an analyst has,
of this server or in files of others.

A page connects to its own server alone (its content security policy says so), and each site's key
stays in that site's page: the analyst asks every site there, saves the release, and opens the files
here. So no server asks another, and none learns a key of another's. Nothing here reads a record or
charges anybody; what a file says is a stranger's text, as in study_files.
"""

import json
from collections.abc import Iterable, Mapping
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from reticent_server.errors import InvalidQuery, InvalidRequest
from reticent_server.workbench.analyses import (
    ANALYSES,
    AnalysisField,
    StudyAnalysis,
    study_of,
)

if TYPE_CHECKING:  # imported where a study is read: three tenths of a second
    from reticent._pooled.study import PooledStudy
    from reticent.kinds.study import Study

Document = Mapping[str, Any]
Json = dict[str, Any]

BETWEEN = "~"
"""Between the ids of an address of several studies: in no id, and plain in an address."""

POOLED = "sites"
"""The member of a pool's document that holds each site's."""

LOADED = "loaded"
"""The member of a document that a file has brought: its name, or of a pool its files' names."""

RELEASED = "released_id"
"""The id that a file's release has at its own server."""

_OURS = frozenset({POOLED, LOADED, RELEASED, "published"})
"""Members that a release has on a page alone."""

MOST_SITES = 12
"""Of a pool, and files that wait for one: as many moments are read again for every analysis."""


MOST_NUMBERS = 40_000
"""Of the moments of all sites of a pool, such as 12 of 56 columns or 2 of 140: a regression on so
many takes half a second of processor time, on 12 of 100 columns more than a second."""


def refuse_large(documents: Iterable[Document]) -> None:
    """Raises InvalidQuery for sites whose moments together are too many for a page."""
    numbers = sum(len(each["result"].get("moments") or ()) ** 2 for each in documents)
    if numbers > MOST_NUMBERS:
        raise InvalidQuery(
            "The studies have too many columns to be pooled on a page: pool them in Python, by "
            "reticent.pool, or in R."
        )


def pooled_document(sites: Mapping[str, Document], weights: str = "people") -> Json:
    """The document of the pool of sites' studies, under the guarantee of the largest charge. Raises
    InvalidQuery for studies that cannot be added, in the client's words.
    """
    if not 1 < len(sites) <= MOST_SITES:
        raise InvalidQuery(f"A pool has the studies of 2 to {MOST_SITES} sites.")
    several = [name for name, document in sites.items() if POOLED in document]
    if several:
        raise InvalidQuery(f"{several[0]}: that is a pool already; take its sites' own studies.")
    if len({str(document["id"]) for document in sites.values()}) < len(sites):
        raise InvalidQuery("One release stands for two sites: its people would count twice.")
    refuse_large(sites.values())
    return {**pooled_study(sites, weights).release, POOLED: dict(sites)}


def pooled_study(sites: Mapping[str, Document], weights: str) -> "PooledStudy":
    """The client's. Raises InvalidQuery."""
    from reticent import ReticentError as ClientError  # noqa: PLC0415 - as above
    from reticent import pool  # noqa: PLC0415 - as above
    from reticent.kinds.study import Study  # noqa: PLC0415 - as above

    try:
        return pool({name: Study(document) for name, document in sites.items()}, weights=weights)
    except ClientError as error:
        raise InvalidQuery(str(error)) from None
    except Exception:  # noqa: BLE001 - files may be wrong in any way
        raise InvalidRequest("The studies' moments cannot be added.") from None


def site_names(documents: Mapping[str, str]) -> dict[str, str]:
    """id → the site's name in formulas and tables: of a file its name without an ending, else the
    data set's; numbered where others have it. documents: id → such a name.
    """
    found: dict[str, str] = {}
    for key, name in documents.items():
        plain = name.removesuffix(".json") or name
        numbered = chain((plain,), (f"{plain}-{k}" for k in count(2)))
        found[key] = next(each for each in numbered if each not in found.values())
    return found


def desk_study(document: Document, group: str) -> "Study":
    """The client's study of a release, of one of its groups, or of a pool."""
    if POOLED in document:
        return pooled_study(document[POOLED], document["query"]["weights"])
    return study_of(document, group)


def analyses_of(document: Document) -> Mapping[str, StudyAnalysis]:
    """What can be made of a document, by name."""
    return POOL_ANALYSES if POOLED in document else ANALYSES


def bare(document: Document) -> Json:
    """As a server released it: a file may say of itself what only a page says."""
    return {name: value for name, value in document.items() if name not in _OURS}


def pool_file(document: Document) -> bytes:
    """What the client's PooledStudy.save writes of a pool."""
    from reticent._pooled.study import FORMAT  # noqa: PLC0415 - as above

    content = {
        "format": FORMAT,
        "weights": document["query"]["weights"],
        "sites": {name: bare(each) for name, each in document[POOLED].items()},
    }
    return json.dumps(content, indent=1, ensure_ascii=False).encode()


def pool_of_file(document: Any) -> Mapping[str, Document] | None:
    """The sites' documents of a pool's file; None of anything else."""
    from reticent._pooled.study import FORMAT  # noqa: PLC0415 - as above

    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        return None
    return dict(document["sites"])


def _heterogeneity(study: "PooledStudy", formula: str, method: str | None) -> Json:
    found = study.heterogeneity(formula, method=method or "REML")
    each = list(found.values())
    return {
        "terms": list(found),
        "coefficients": [one.estimate for one in each],
        "standard_errors": [one.se for one in each],
        "confidence_intervals": [list(one.conf_int()) for one in each],
        "p_values": [one.pvalue for one in each],
        "variances_between_sites": [one.tau2 for one in each],
        "I²": [one.I2 for one in each],
        "Q": [one.Q for one in each],
        "p_values_of_Q": [one.pvalue_Q for one in each],
        "by_site": [
            {
                "term": name,
                "sites": list(one.sites),
                "estimates": one.estimates.tolist(),
                "standard_errors": one.bse.tolist(),
            }
            for name, one in found.items()
        ],
        "n": study.nobs,
        "warnings": list(study.result["warnings"]),
    }


POOL_ANALYSES: Mapping[str, StudyAnalysis] = {
    **ANALYSES,
    "heterogeneity": StudyAnalysis(
        "heterogeneity", "Heterogeneity", "Do the sites agree?", "heterogeneity",
        "Meta-analysis of the sites' own least squares, whose errors count noise; nothing more is "
        "charged",
        (
            AnalysisField(
                "formula", "Formula",
                "Such as y ~ x + g, fitted at each site; main: the declared one.",
                adds="formula",
            ),
            AnalysisField(
                "method", "Method", "Empty: REML; fixed, DL or PM.", is_needed=False
            ),
        ),
        _heterogeneity,
    ),
}  # fmt: skip
"""What can be made of a pool: all that can be made of a study, and how its sites differ."""
