# SPDX-License-Identifier: Apache-2.0
"""A pooled study: the studies of several sites as one, and what differs between them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reticent._errors import InvalidFormula, InvalidQuery, NotEstimable
from reticent._json_file import json_of
from reticent._pooled.answers import (
    require_addable,
    require_asked,
    require_one_question,
    require_same_columns,
)
from reticent._pooled.meta import MetaAnalysis, meta
from reticent._pooled.moments import SITE, pooled_moments, precise
from reticent._pooled.protocol import Protocol, protocol
from reticent._reading import read
from reticent._study.fit import StudyFit
from reticent._study.moments import Moments
from reticent._text import paragraph
from reticent.kinds.study import Study

if TYPE_CHECKING:
    from reticent._dataset import Dataset

FORMAT = "reticent pooled study 1"
_PERSONS = (
    "Each site's guarantee holds for the records of that site. A person with records at several "
    "sites has the sum of their epsilons"
)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class PooledStudy(Study):
    """Studies of several sites, added: every analysis of a study is about the pooled people.

    `site` is a factor in formulas, and `site:x` its products. sites: each site's study. absent:
    columns that some sites lack, and which sites; they are in none of the analyses.

    >>> pooled = reticent.pool({"north": study_a, "south": study_b})
    >>> pooled.ols("price ~ grade + site").summary()
    >>> pooled.heterogeneity("price ~ grade")["grade"].I2
    """

    sites: Mapping[str, Study]
    weights: Mapping[str, float]
    absent: Mapping[str, tuple[str, ...]]
    pooled: Moments

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that all sites have, without the intercept and the sites."""
        return self.pooled.names[1 : self._own_columns]

    @property
    def groups(self) -> Mapping[str, Study]:
        """A study by site."""
        return self.sites

    def __getitem__(self, level: str) -> Study:
        """The study of one site. Raises KeyError."""
        if level not in self.sites:
            raise KeyError(f"{level}: the sites are {', '.join(self.sites)}")
        return self.sites[level]

    @property
    def clipped(self) -> tuple[float, float]:
        """The share of the records' weight that radii have taken, and its standard error."""
        each = [(w, *self.sites[name].clipped) for name, w in self.weights.items()]
        return sum(w * x for w, x, _ in each), sum((w * s) ** 2 for w, _, s in each) ** 0.5

    @property
    def main(self) -> StudyFit:
        """Raises KeyError: each site has its own, and heterogeneity("main") summarises them."""
        raise KeyError('Each site has its main formula: pooled.heterogeneity("main") adds them.')

    def of(self, *sites: str) -> "PooledStudy":
        """The pool of some sites, such as those that have a column which others lack."""
        return pool({name: self[name] for name in sites})

    def heterogeneity(
        self, formula: str, *, method: str = "REML", hartung_knapp: bool | None = None
    ) -> dict[str, MetaAnalysis]:
        """By term, the meta-analysis of the sites' own fits: Q, I², τ², and their summary.

        formula: over the columns; "main": the declared one, whose errors are robust. A term of
        which a site has no interval is left out there; with one site left it is not in the result.
        Raises NotEstimable where no term is left.
        """
        fits = {
            name: study.main if formula == "main" else study.ols(formula)
            for name, study in self.sites.items()
        }
        found = {}
        for term in dict.fromkeys(t for fit in fits.values() for t in fit.names):
            usable = {s: f for s, f in fits.items() if term in f.names and _shown(f, term)}
            if len(usable) > 1:
                found[term] = meta(usable, term, method=method, hartung_knapp=hartung_knapp)
        if not found:
            raise NotEstimable(
                "No term has intervals at two sites: the noise of single sites is too large. The "
                f"pooled fit with `{SITE}` and its products may have them."
            )
        return found

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the sites' releases as one JSON file, for reticent.load_pooled."""
        content = {
            "format": FORMAT,
            "weights": self.release["query"]["weights"],
            "sites": {name: dict(study.release) for name, study in self.sites.items()},
        }
        Path(path).write_text(json.dumps(content, indent=1, ensure_ascii=False), "utf-8")

    def check(self) -> None:
        for study in self.sites.values():
            study.check()

    def _headline(self) -> list[str]:
        shares = ", ".join(f"{name} (n = {s.nobs:,})" for name, s in self.sites.items())
        return [*paragraph(f"Pooled study of {shares}")]

    @property
    def _own_columns(self) -> int:
        return len(self.pooled.names) // len(self.sites)

    @property
    def _own(self) -> Mapping[str, Any]:
        return self.result

    @property
    def _moments(self) -> Moments:
        return self.pooled

    def _places(self, variables: Sequence[str] | None) -> tuple[int, ...]:
        if variables is None:
            return tuple(range(1, self._own_columns))
        return Study._places(self, variables)  # noqa: SLF001 - super() fails in classes with slots


def pool(sites: Mapping[str, Study], *, weights: str = "people") -> PooledStudy:
    """The pooled study of sites' studies. Free.

    weights: "people": the estimates are about the pooled people, as if their tables were one.
    "precision": a site with few records or a small ε counts less than its people, which is more
    precise, and about the same coefficients if these are the same at all sites. Raises InvalidQuery
    where studies cannot be added.

    >>> reticent.pool({"north": reticent.load("north.json"), "south": reticent.load("south.json")})
    """
    if weights not in {"people", "precision"}:
        raise InvalidQuery('weights is "people" or "precision".')
    _addable(sites)
    common, absent = _common(sites)
    moments = {name: _chosen(study, common) for name, study in sites.items()}
    sizes = [
        float(study.nobs) if weights == "people" else precise(moments[name])
        for name, study in sites.items()
    ]
    shares = [size / sum(sizes) for size in sizes]
    added = pooled_moments(moments, shares)
    by_site = dict(zip(sites, shares, strict=True))
    document = _document(sites, added, absent, weights)
    return PooledStudy(document, dict(sites), by_site, absent, added)


def load_pooled(path: str | PathLike[str]) -> PooledStudy:
    """The pooled study that `save` wrote. Raises InvalidQuery, OSError, UnexpectedReply."""
    content = json_of(path, "a pooled study")
    known = isinstance(content, Mapping) and content.get("format") == FORMAT
    if not known or not isinstance(content.get("sites"), Mapping):
        raise InvalidQuery(f"{path} holds no pooled study; pooled.save(path) writes one.")
    studies: dict[str, Any] = {name: read(one) for name, one in content["sites"].items()}
    return pool(studies, weights=content.get("weights", "people"))


def pooled(
    agreed: Protocol | str | PathLike[str] | Mapping[str, Any],
    datasets: "Mapping[str, Dataset] | Sequence[Dataset]",
    *,
    weights: str = "people",
    resume: bool = False,
) -> PooledStudy:
    """Asks every site the protocol's study, and pools them.

    datasets: by site, or in the order of the protocol's sites; each from the client of its server.
    All schemas are checked and all plans are made first, which is free: where one site does not
    agree nothing is charged at any. Each site's ledger is charged its own ε. A site that has signed
    the protocol is sent its digest, and its server refuses, before a charge, what is not as it
    says. The digest stands in the idempotency keys: asked again after a lost connection, a site
    that has answered is not charged again. resume: go on although a budget covers no more, as sites
    that have answered need none. Raises InvalidQuery with all that does not agree, and
    UnexpectedReply for a site that answers another question or with numbers that cannot be.

    >>> pooled = reticent.pooled("protocol.json", {"north": north, "south": south})
    """
    terms = agreed if isinstance(agreed, Protocol) else protocol(agreed)
    by_site = {
        name: ds._under(_named(terms, name))  # noqa: SLF001 - of this package
        for name, ds in _by_site(terms, datasets).items()
    }
    said = [p for name, ds in by_site.items() for p in terms.problems(name, ds.schema)]
    if said:
        raise InvalidQuery("Nothing was asked or charged. " + " ".join(said))
    short = [
        name for name, ds in by_site.items() if not ds.plan("study", **_asked(terms, name)).covered
    ]
    if short and not resume:
        raise InvalidQuery(
            f"Nothing was asked or charged: the budgets at {', '.join(short)} do not cover it. "
            "Where a site has answered this protocol already, resume=True asks for its release."
        )
    studies: dict[str, Any] = {
        name: ds.study(**_asked(terms, name), idempotency_key=_key(terms, name))
        for name, ds in by_site.items()
    }
    questions = {name: terms.question(name) for name in studies}
    for name, study in studies.items():
        require_asked(name, study, questions[name], terms.epsilon(name), by_site[name].n)
    require_same_columns(studies, questions)
    return pool(studies, weights=weights)


def _asked(terms: Protocol, site: str) -> dict[str, Any]:
    """The question and what it may cost."""
    return terms.question(site) | _spending(terms, site)


def _key(terms: Protocol, site: str) -> str:
    """Of a site's request, with the digest; another where the request names the digest, too."""
    signed = "-signed" if site in terms.signed else ""
    return f"pooled-{terms.digest[:32]}-{sha256(site.encode()).hexdigest()[:12]}{signed}"


def _named(terms: Protocol, site: str) -> str | None:
    """The digest for a site that has signed, whose server holds requests to it."""
    return terms.digest if site in terms.signed else None


def _spending(terms: Protocol, site: str) -> dict[str, Any]:
    delta = terms.document.get("delta")
    return {"epsilon": terms.epsilon(site)} | ({} if delta is None else {"delta": float(delta)})


def _by_site(
    terms: Protocol, datasets: "Mapping[str, Dataset] | Sequence[Dataset]"
) -> "dict[str, Dataset]":
    if not isinstance(datasets, Mapping):
        if len(datasets) != len(terms.sites):
            raise InvalidQuery(f"Give a data set for each of {', '.join(terms.sites)}, in order.")
        return dict(zip(terms.sites, datasets, strict=True))
    if set(datasets) != set(terms.sites):
        raise InvalidQuery(f"Give a data set for each of {', '.join(terms.sites)}.")
    return {name: datasets[name] for name in terms.sites}


def _addable(sites: Mapping[str, Study]) -> None:
    if len(sites) < 2:
        raise InvalidQuery("A pool has the studies of two sites or more.")
    for name, study in sites.items():
        require_addable(name, study)
    require_one_question(sites)
    if any(a.release == b.release for a, b in combinations(sites.values(), 2)):
        raise InvalidQuery("One release stands for two sites: its people would count twice.")
    if len({bool(study.result.get("effects")) for study in sites.values()}) > 1:
        raise InvalidQuery("Person effects are for all sites or for none.")


def _common(
    sites: Mapping[str, Study],
) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Columns of all sites in the order of the first, and those that some lack by name."""
    has = {name: tuple(map(str, study.result["terms"])) for name, study in sites.items()}
    every = dict.fromkeys(term for terms in has.values() for term in terms)
    absent = {t: tuple(s for s, terms in has.items() if t not in terms) for t in every}
    lacking = {t: s for t, s in absent.items() if s}
    common = tuple(t for t in every if t not in lacking)
    if len(common) < 2:
        raise InvalidQuery("The studies have no column in common.")
    if any(x == SITE or x.startswith(f"{SITE}[") for t in common for x in t.split(":")):
        raise InvalidFormula(f"A column is called {SITE}, which distinguishes sites: rename it.")
    return common, lacking


def _chosen(study: Study, common: Sequence[str]) -> Moments:
    """The site's moments of the common columns, in their order."""
    moments = study._moments  # noqa: SLF001 - a study of this package
    return moments.of([moments.names.index(name) for name in common])


def _document(
    sites: Mapping[str, Study],
    added: Moments,
    absent: Mapping[str, tuple[str, ...]],
    weights: str,
) -> dict[str, Any]:
    """As of one release: the sites' names, n and terms; the largest charge and its guarantee."""
    studies = list(sites.values())
    first = max(studies, key=lambda study: float(study.release["charged"].get("epsilon") or 0.0))
    digest = sha256("".join(study.id for study in studies).encode()).hexdigest()[:16]
    guarantee = dict(first.release["guarantee"])
    guarantee["assumptions"] = [*(guarantee.get("assumptions") or ()), _PERSONS]
    dummies = dict(zip(studies[0].result["terms"], studies[0].result["dummies"], strict=True))
    warnings = dict.fromkeys(w for study in studies for w in study.result["warnings"])
    lacking = [f"{t} is not at {', '.join(s)}, and not pooled." for t, s in absent.items()]
    result = {
        "terms": list(added.names),
        "variables": dict(studies[0].result["variables"]),
        "dummies": [bool(dummies.get(name, name.startswith(SITE))) for name in added.names],
        "n": sum(study.nobs for study in studies),
        "warnings": [*lacking, *warnings],
    }
    if any("design_effect" in study.result for study in studies):
        result["design_effect"] = max(
            float(study.result.get("design_effect", 1.0)) for study in studies
        )
    if added.effects:
        result["effects"] = "person"
    return {
        "id": f"pool_{digest}",
        "dataset": " + ".join(sites),
        "version": max(study.version for study in studies),
        "status": "reply",
        "query": {"kind": "study", "sites": list(sites), "weights": weights},
        "charged": dict(first.release["charged"]),
        "guarantee": guarantee,
        "created_at": max(study.created_at for study in studies),
        "result": result,
    }


def _shown(fit: StudyFit, term: str) -> bool:
    """Whether a coefficient has an interval."""
    low, high = fit.result["confidence_intervals"][list(fit.names).index(term)]
    return low is not None and high is not None
