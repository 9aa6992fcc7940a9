# SPDX-License-Identifier: Apache-2.0
"""The study desk: what a study's release holds is analysed as often as one likes, for nothing.

The address of the page is the notebook: it holds every analysis that was made, so that a bookmark
keeps them, and nobody else learns what was tried. Opening it makes them again from the release,
which reads no record.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlencode

from fastapi import Request, Response

from reticent_server.domain.patience import checkpoint
from reticent_server.errors import InvalidRequest, NotFound, ReticentError
from reticent_server.kinds.study.kind import KIND
from reticent_server.pipeline import browse, publishing
from reticent_server.web.routing import pages_router
from reticent_server.web.tables import ShownResult, shown
from reticent_server.web.words import plain_words
from reticent_server.workbench import exports
from reticent_server.workbench.analyses import AnalysisField, StudyAnalysis
from reticent_server.workbench.asking import Asking, asker
from reticent_server.workbench.pools import (
    BETWEEN,
    LOADED,
    MOST_SITES,
    POOLED,
    RELEASED,
    analyses_of,
    desk_study,
    pool_file,
    pooled_document,
    refuse_large,
    site_names,
)
from reticent_server.workbench.study_files import (
    loaded_study,
    receive_study,
    waiting_studies,
)

router = pages_router("workbench")

MOST_ENTRIES = 12
"""Analyses of an address: each has 2,000 characters a field at most, and the address is read by
servers that take 64 KB."""

MOST_LISTED = 500
"""Releases that are looked through for studies: the newest, as in the history."""

_FILE_ID = 32
"""Characters of the id of a file; releases' are shorter."""

_TOGETHER = ("python", "r", "notebook", "markdown", "csv", "latex")
"""Formats that hold several analyses in one file."""

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DeskEntry:
    """One analysis that was asked for. group: of a study by groups; empty without."""

    analysis: StudyAnalysis
    group: str
    texts: Mapping[str, str]

    @property
    def address(self) -> str:
        """As the page's address has it."""
        return urlencode({"a": self.analysis.name, "g": self.group, **self.texts})

    @property
    def asked(self) -> Mapping[str, str]:
        """What was asked, by the labels of its fields."""
        of_group = {"group": self.group} if self.group else {}
        named = {each.label: self.texts.get(each.name, "") for each in self.analysis.fields}
        return of_group | {label: text for label, text in named.items() if text}

    def document(self, release: Document) -> dict[str, Any]:
        """The analysis as a release's document, under the study's guarantee."""
        result = self._result(release)
        where = {k: v for k, v in release["query"].items() if k == "where" and v}
        sites = {"sites": ", ".join(release[POOLED])} if POOLED in release else {}
        query = {"kind": self.analysis.label.lower(), **sites, **where, **self.asked}
        return {**release, "query": query, "result": result, "answers": self.analysis.answers}

    def _result(self, release: Document) -> dict[str, Any]:
        """Raises InvalidRequest and its kinds; of a stranger's file whatever goes wrong is one."""
        try:
            return self.analysis.run(desk_study(release, self.group), self.texts)
        except ReticentError:
            raise
        except Exception:
            if LOADED not in release:
                raise
            raise InvalidRequest(
                "The file's study does not hold what this analysis needs."
            ) from None


@dataclass(frozen=True, slots=True)
class EntryShown:
    """An entry of the page. without, change: addresses. problem: why there is no result."""

    entry: DeskEntry
    result: ShownResult | None
    problem: str
    without: str
    change: str
    exports: Mapping[str, str]


@router.get("/studies")
def studies(visit: Asking) -> Response:
    """One's studies, those that are published to one, and the way to a new one."""
    services, principal = visit.services, asker(visit)
    page = json.loads(browse.releases(services, principal, MOST_LISTED, 0))
    datasets = browse.datasets(services, principal)
    published = [
        each
        for dataset in datasets
        for each in json.loads(
            publishing.published(services, principal, dataset["name"], MOST_LISTED, 0)
        )["releases"]
    ]
    return visit.page(
        "studies.html",
        own=[each for each in page["releases"] if is_study(each)],
        published=[each for each in published if is_study(each)],
        files=waiting_studies(visit),
        datasets=datasets,
    )


@router.post("/studies")
async def load(visit: Asking, request: Request) -> Response:
    """Opens the desk of a study that is in a file."""
    return visit.redirect(_path(await receive_study(visit, request)))


@router.get("/studies/pool")
def pool(visit: Asking) -> Response:
    """The desk of the studies that were chosen from the list."""
    chosen = list(dict.fromkeys(visit.request.query_params.getlist("study")))
    if len(chosen) < 2 or any(BETWEEN in each for each in chosen):
        raise InvalidRequest("Choose two studies or more, of different sites.")
    return visit.redirect(_path(BETWEEN.join(chosen)))


@router.get("/studies/{release_id}")
async def desk(visit: Asking, release_id: str) -> Response:
    """The analyses of the address, and the form of the next one."""
    return await visit.at_its_turn(partial(_desk, visit, release_id))


@router.get("/studies/{release_id}/export/{form}")
async def export(visit: Asking, release_id: str, form: str) -> Response:
    """Analyses as a file: a document, or a script that makes them again."""
    return await visit.at_its_turn(partial(_export, visit, release_id, form))


def is_study(release: Document) -> bool:
    """Whether a release can be analysed on the desk."""
    return release["query"]["kind"] == KIND.name and release["result"] is not None


def _desk(visit: Asking, release_id: str) -> Response:
    release, query = _study(visit, release_id), visit.request.query_params
    analyses = analyses_of(release)
    done = _entries(query.getlist("done"), analyses)
    chosen = analyses.get(query.get("choose") or query.get("analysis", ""), None)
    analysis = chosen or next(iter(analyses.values()))
    texts = {each.name: query.get(each.key, "").strip() for each in analysis.fields}
    draft = _with_column(DeskEntry(analysis, query.get("group", ""), texts), query.get("add", ""))
    problem = ""
    if "run" in query:
        try:
            _of_room(done, draft).document(release)
        except ReticentError as error:
            problem = error.detail
        else:
            kept = [*(each for each in done if each != draft), draft]
            return visit.redirect(f"{_path(release_id)}?{_done(kept)}#results")
    return visit.page(
        "desk.html",
        422 if problem else 200,
        release=release,
        sites=release.get(POOLED),
        analyses=analyses,
        draft=draft,
        problem=problem,
        columns=[*release["result"]["variables"], *(["site"] if POOLED in release else [])],
        terms=release["result"]["terms"][1:],
        groups=list(release["result"].get("groups") or ()),
        done=[each.address for each in done],
        entries=[_shown(release, done, k) for k in reversed(range(len(done)))],
        together={k: v for k, v in _formats(release).items() if k in _TOGETHER},
        all=_done(done),
        words=plain_words(release["guarantee"]),
    )


def _of_room(done: Sequence[DeskEntry], draft: DeskEntry) -> DeskEntry:
    if len(done) >= MOST_ENTRIES and draft not in done:
        raise InvalidRequest(
            f"The page holds {MOST_ENTRIES} analyses: bookmark or export it, and take one out."
        )
    return draft


def _shown(release: Document, done: Sequence[DeskEntry], k: int) -> EntryShown:
    checkpoint()
    entry = done[k]
    others = [each for each in done if each != entry]
    path = _path(release["id"])
    fields = {each.key: entry.texts.get(each.name, "") for each in entry.analysis.fields}
    again = {"analysis": entry.analysis.name, "group": entry.group, **fields}
    result, problem = None, ""
    try:
        result = shown(entry.document(release)["result"])
    except ReticentError as error:
        problem = error.detail
    return EntryShown(
        entry,
        result,
        problem,
        without=f"{path}?{_done(others)}",
        change=f"{path}?{urlencode(again)}&{_done(others)}#fields",
        exports={
            label: f"{path}/export/{name}?{_done([entry])}"
            for name, label in _formats(release).items()
        },
    )


def _export(visit: Asking, release_id: str, form: str) -> Response:
    release = _study(visit, release_id)
    if form == "pool" and POOLED in release:
        headers = {"Content-Disposition": 'attachment; filename="pool.json"'}
        return visit.keep(Response(pool_file(release), 200, headers, "application/json"))
    entries = _entries(visit.request.query_params.getlist("done"), analyses_of(release))
    made = exports.EXPORTS.get(form)
    several = len(entries) > 1
    if made is None or form not in _formats(release) or (several and form not in _TOGETHER):
        raise NotFound("There is no such format here.")
    if not entries:
        raise InvalidRequest("Make an analysis first: there is none to export.")
    url = visit.server_url
    script = exports.SCRIPTS.get(form)
    if script is not None:
        content = script(release, url, [_step(form, each, release) for each in entries])
    else:
        content = b"\n".join(made.write(each, url) for each in documents(entries, release))
    headers = {"Content-Disposition": f'attachment; filename="{release["id"]}-desk{made.ending}"'}
    return visit.keep(Response(content, media_type=made.media_type, headers=headers))


def documents(entries: Sequence[DeskEntry], release: Document) -> Iterator[dict[str, Any]]:
    """Each analysis as a document. Raises as its fields do, and where nobody waits any more or it
    takes too long.
    """
    for entry in entries:
        checkpoint()
        yield entry.document(release)


def _formats(release: Document) -> dict[str, str]:
    """A release's own JSON is no analysis; R reads one's own releases only, and scripts no file
    that a page has loaded, and no pool.
    """
    left_out = {"json", "r"} if release.get("published") else {"json"}
    left_out |= set(exports.SCRIPTS) if LOADED in release or POOLED in release else set()
    return {name: label for name, label in exports.formats().items() if name not in left_out}


def _step(form: str, entry: DeskEntry, release: Document) -> str:
    """The line of a script that makes an analysis."""
    by_groups = bool(release["result"].get("groups"))
    group = json.dumps(entry.group, ensure_ascii=False)
    if form == "r":
        study = f"study_group(answer, {group})" if by_groups else "answer"
        return entry.analysis.r(entry.texts, study)
    return entry.analysis.python(entry.texts, f"release[{group}]" if by_groups else "release")


def _study(visit: Asking, release_id: str) -> dict[str, Any]:
    """One's own study, or one that is published to one; the pool of several. Raises NotFound."""
    if BETWEEN in release_id:
        return _pool(visit, release_id)
    if len(release_id) == _FILE_ID:
        return loaded_study(visit, release_id)
    services, principal = visit.services, asker(visit)
    try:
        document: dict[str, Any] = json.loads(browse.release(services, principal, release_id))
    except NotFound:
        stored = publishing.published_release(services, principal, release_id)
        document = json.loads(stored) | {"published": True}
    if not is_study(document):
        raise NotFound("There is no such study.")
    return document


def _pool(visit: Asking, address: str) -> dict[str, Any]:
    """Of the studies whose ids an address has."""
    ids = list(dict.fromkeys(address.split(BETWEEN)))
    found: dict[str, dict[str, Any]] = {}
    for each in ids[: MOST_SITES + 1]:
        checkpoint()
        found[each] = _study(visit, each)
        refuse_large(found.values())
    here = [_people(visit, each["dataset"]) for each in found.values() if LOADED not in each]
    if len(set(here)) < len(here):
        raise InvalidRequest(
            "Two of the studies are of the same people, who would count twice. Choose one."
        )
    names = site_names({k: str(v.get(LOADED) or v["dataset"]) for k, v in found.items()})
    released = {k: v | {"id": v.get(RELEASED, v["id"])} for k, v in found.items()}
    pooled = pooled_document({names[k]: v for k, v in released.items()})
    files = ", ".join(str(each[LOADED]) for each in found.values() if LOADED in each)
    return pooled | {"id": address} | ({LOADED: files} if files else {})


def _people(visit: Asking, dataset: str) -> str:
    """The population of a data set of this server; of one that is retired its own name."""
    try:
        return visit.services.catalog.facts(dataset).population
    except NotFound:
        return dataset


def _entries(addresses: Sequence[str], analyses: Mapping[str, StudyAnalysis]) -> list[DeskEntry]:
    """The analyses of an address; what is none is left out."""
    found = []
    for address in addresses[:MOST_ENTRIES]:
        fields = dict(parse_qsl(address))
        analysis = analyses.get(fields.get("a", ""))
        if analysis is not None:
            texts = {each.name: fields.get(each.name, "") for each in analysis.fields}
            found.append(DeskEntry(analysis, fields.get("g", ""), texts))
    return list({each.address: each for each in found}.values())


def _with_column(draft: DeskEntry, added: str) -> DeskEntry:
    """The draft after a press on a column's button: "field:column"."""
    name, _, column = added.partition(":")
    field = next((each for each in draft.analysis.fields if each.name == name), None)
    if field is None or not column or not field.adds:
        return draft
    text = _added(field, draft.texts[name], column)
    return DeskEntry(draft.analysis, draft.group, {**draft.texts, name: text})


def _added(field: AnalysisField, text: str, column: str) -> str:
    if field.adds == "whole":
        return column
    if field.adds == "names":
        return f"{text}, {column}" if text else column
    if not text:
        return f"{column} ~ "
    return f"{text} {column}" if text.rstrip().endswith(("~", "+", "|")) else f"{text} + {column}"


def _done(entries: Sequence[DeskEntry]) -> str:
    return urlencode([("done", each.address) for each in entries])


def _path(release_id: str) -> str:
    return f"/workbench/studies/{release_id}"
