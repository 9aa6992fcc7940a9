# SPDX-License-Identifier: Apache-2.0
"""The study desk by bare requests: every analysis gives the client's numbers, for nothing, on the
page and in files, and nobody reads a study that is not theirs or published.
"""

import contextlib
import html
import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from benchmarks.flood import COLUMNS, widest_study

import reticent
from reticent.kinds.study import Study
from reticent_server.app import create_app
from reticent_server.domain.patience import Patience
from reticent_server.domain.query import Privacy
from reticent_server.errors import CallerLeft
from reticent_server.kinds.study.kind import MOST_COLUMNS, MOST_TERMS
from reticent_server.kinds.study.kind import Study as StudyQuestion
from reticent_server.pipeline.answer import Ask, answer
from reticent_server.web.tables import shown
from reticent_server.workbench import pools
from reticent_server.workbench.analyses import ANALYSES, MOST_STRUCTURAL, study_of
from reticent_server.workbench.desk import MOST_ENTRIES, DeskEntry, documents
from reticent_server.workbench.pools import BETWEEN, MOST_SITES, site_names
from support.installations.bench import Bench, Browser
from support.installations.small import Installation, copied, opened
from support.kinds import r_cases

VARIABLES = ("y", "x", "k", "C(g)", "b")
ASKED: Mapping[str, dict[str, str]] = {
    "regression": {"formula": "y ~ x + g"},
    "correlations": {"variables": "y, x\nk"},
    "partial": {"x": "y", "y": "x", "given": "k, g"},
    "instruments": {"formula": "y ~ x + b | k + b"},
    "structural": {"model": "y ~ a*x + b; x ~ c*k; ac := a*c"},
    "reliability": {"items": "y, x, k"},
    "agreement": {"raters": "y, x"},
    "limits": {"x": "y", "y": "x"},
    "mediation": {"x": "k", "mediator": "x", "y": "y", "controls": "b"},
    "robustness": {"base": "y ~ x", "variations": "+ k\n+ g, y ~ x + k + b", "term": ""},
    "selection": {"response": "y", "candidates": ""},
}
"""What is asked of each analysis of rows: a new one fails until it is here."""
OF_PERSONS = {"mixed": {"formula": "y ~ x0 + own", "constant": "own"}}
"""What is asked of a study of persons with several rows."""


@pytest.fixture(scope="module")
def studies(
    installation_template: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Bench, dict[str, Any], dict[str, Any]]]:
    """A bench, a study of ana's, and one by groups; noise by a seed."""
    directory = tmp_path_factory.mktemp("desk") / "bench"
    with copied(installation_template, directory) as own, opened(own.settings) as services:
        ana = services.access.authenticate(own.keys["ana"])
        assert ana is not None
        made = [
            json.loads(answer(services, ana, Ask("people", each, Privacy(20.0))))
            for each in (StudyQuestion(VARIABLES), StudyQuestion(("y", "x", "k"), by="g"))
        ]
        assert [each["status"] for each in made] == ["reply", "reply"]
        yield Bench(services, own.keys, create_app(services)), made[0], made[1]


_SIGNED: dict[tuple[int, str], Browser] = {}


def signed(bench: Bench, name: str) -> Browser:
    """Somebody's browser: who signs in too often has to wait."""
    if (id(bench), name) not in _SIGNED:
        _SIGNED[id(bench), name] = bench.browser(name)
    return _SIGNED[id(bench), name]


def path(study: Mapping[str, Any]) -> str:
    return f"/workbench/studies/{study['id']}"


def compute(
    browser: Browser,
    study: Mapping[str, Any],
    name: str,
    done: list[str] | None = None,
    **more: str,
) -> httpx.Response:
    """The form, sent."""
    fields = {f"f.{k}": v for k, v in ASKED[name].items()}
    asked = {"analysis": name, "run": "1", "done": done or [], **fields, **more}
    return browser.get(f"{path(study)}?{urlencode(asked, doseq=True)}")


def done_of(reply: httpx.Response) -> list[str]:
    assert reply.status_code == 303, reply.text
    return parse_qs(urlsplit(reply.headers["location"]).query)["done"]


def spent(bench: Bench) -> Any:
    ana = bench.services.access.analyst("ana").id
    return [each.spent for each in bench.services.ledger.balances(ana)]


@pytest.mark.slow
def test_every_analysis_is_made_for_nothing(studies: Any) -> None:
    """What is computed stands in the address, and is made again from it, all together."""
    bench, study, _ = studies
    ana, before = signed(bench, "ana"), spent(bench)
    done: list[str] = []
    assert set(ASKED) | set(OF_PERSONS) == set(ANALYSES)
    for name in ASKED:
        done = done_of(compute(ana, study, name, done))
    assert len(done) == len(ASKED)
    shown = ana.get(f"{path(study)}?{urlencode({'done': done}, doseq=True)}").text
    for number, analysis in enumerate((ANALYSES[name] for name in ASKED), 1):
        assert f"{number}. {analysis.label}" in shown
        assert html.escape(analysis.answers, quote=True).replace("&#x27;", "&#39;") in shown
    assert spent(bench) == before
    again = done_of(compute(ana, study, "regression", done))
    assert sorted(again) == sorted(done)  # asked twice, it stands there once


@pytest.mark.slow
def test_numbers_are_the_client_s(studies: Any) -> None:
    _, study, _ = studies
    own = Study(study)
    made = {k: ANALYSES[k].run(study_of(study, ""), texts) for k, texts in ASKED.items()}
    fit, iv = own.ols("y ~ x + g"), own.iv("y ~ x + b | k + b")
    assert made["regression"]["coefficients"] == list(fit.params)
    assert made["regression"]["standard_errors"] == list(fit.bse)
    assert made["regression"]["rsquared"] == own.r2("y ~ x + g")[0]
    assert made["instruments"]["first_stage"][0]["F"] == iv.first_stage["x"]["F"]
    assert made["instruments"]["anderson_rubin_intervals"] == iv.result["anderson_rubin"]
    corr = own.corr(["y", "x", "k"])
    assert made["correlations"]["pairs"] == ["y, x", "y, k", "x, k"]
    assert made["correlations"]["correlations"] == [corr.values[1, 0], *corr.values[2, :2]]
    assert made["partial"]["correlations"] == [own.partial_corr("y", "x", ["k", "g"]).value]
    effects = own.mediation("k", "x", "y", ["b"])
    assert made["mediation"]["estimates"] == list(effects.values)
    assert made["agreement"]["estimates"] == list(own.icc(["y", "x"]).values)
    limits = own.bland_altman("y", "x")
    assert made["limits"]["measures"] == list(limits.names)
    assert made["limits"]["confidence_intervals"] == limits.conf_int().tolist()
    curve = own.robustness("y ~ x", ["+ k", "+ g", "y ~ x + k + b"])
    assert made["robustness"]["specifications"] == list(curve.formulas)
    assert made["robustness"]["coefficients"] == list(curve.values)
    best = own.select("y")
    assert made["selection"]["coefficients"] == list(best.fit.params)
    assert made["selection"]["ranking"]["bic"] == [bic for _, bic in best.ranking]


def test_a_random_intercept_is_of_a_study_of_persons(studies: Any) -> None:
    """Its numbers are the client's, on the page too; a study of rows is told what to ask."""
    bench, study, _ = studies
    fixture = json.loads(r_cases.FIXTURE.read_text("utf-8"))["studies"]["means"]
    analysis, texts = ANALYSES["mixed"], OF_PERSONS["mixed"]
    fit = Study(fixture).mixedlm("y ~ x0 + own", ["own"])
    made = analysis.run(study_of(fixture, ""), texts)
    assert made["coefficients"] == list(fit.params)
    assert made["standard_errors"] == list(fit.bse)
    rows = {each["term"]: each for each in made["variance_components"]}
    assert {name: each["estimate"] for name, each in rows.items()} == dict(fit.components)
    low, high = fit.components_conf_int()["icc"]
    assert rows["icc"]["confidence_interval"] == [low, high]
    assert f"{fit.icc:.4g}" in str(shown({**fixture, "result": made}))
    call = 'mixedlm("y ~ x0 + own", ["own"])'
    assert analysis.python(texts, "study") == f"print(study.{call})"
    assert analysis.r(texts, "study") == 'print(study_mixedlm(study, "y ~ x0 + own", c("own")))'
    fields = {"f.formula": "y ~ x", "f.constant": ""}
    asked = urlencode({"analysis": "mixed", "run": "1", **fields})
    refused = signed(bench, "ana").get(f"{path(study)}?{asked}")
    assert refused.status_code == 422
    assert "of persons with several rows" in refused.text


@pytest.mark.slow
def test_a_script_makes_the_same_numbers(studies: Any) -> None:
    """The lines of the Python file, run on the release; the R file calls the same functions."""
    bench, study, grouped = studies
    ana = signed(bench, "ana")
    done = [done_of(compute(ana, study, name))[0] for name in ASKED]
    every = urlencode({"done": done}, doseq=True)
    script = ana.get(f"{path(study)}/export/python?{every}").text
    lines = [line for line in script.splitlines() if line.startswith("print(release.")]
    assert len(lines) == len(ASKED)
    for line in lines:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(line, {"release": Study(study)})
        assert len(out.getvalue()) > 20
    in_r = ana.get(f"{path(study)}/export/r?{every}").text
    assert 'study_robustness(answer, "y ~ x", c("+ k", "+ g", "y ~ x + k + b"))' in in_r
    assert 'study_mediation(answer, "k", "x", "y", c("b"))' in in_r
    of_b = done_of(ana.get(f"{path(grouped)}?analysis=regression&f.formula=y+~+x&group=b&run=1"))
    one = ana.get(f"{path(grouped)}/export/python?{urlencode({'done': of_b}, doseq=True)}").text
    assert 'print(release["b"].ols("y ~ x"))' in one
    book = ana.get(f"{path(study)}/export/notebook?{every}").json()
    assert "release.corr" in book["cells"][1]["source"]


def test_each_export_holds_the_numbers(studies: Any) -> None:
    bench, study, _ = studies
    ana = signed(bench, "ana")
    done = urlencode({"done": done_of(compute(ana, study, "regression"))}, doseq=True)
    value = Study(study).ols("y ~ x + g").params["x"]
    assert repr(float(value)) in ana.get(f"{path(study)}/export/csv?{done}").text
    for form in ("markdown", "html", "latex"):
        text = ana.get(f"{path(study)}/export/{form}?{done}").text
        assert f"{abs(value):.4g}" in text, form
        assert "Guarantee" in text, form
    both = f"{done}&{urlencode({'done': done_of(compute(ana, study, 'partial'))}, doseq=True)}"
    assert "correlations" in ana.get(f"{path(study)}/export/markdown?{both}").text
    assert ana.get(f"{path(study)}/export/html?{both}").status_code == 404
    assert ana.get(f"{path(study)}/export/json?{done}").status_code == 404
    assert ana.get(f"{path(study)}/export/csv").status_code == 422


def test_what_is_wrong_is_said_at_the_form(studies: Any) -> None:
    bench, study, grouped = studies
    ana = signed(bench, "ana")
    tried = {
        "y ~ garde": "is not in this study",
        "": "it is needed",
        "y ~ x + " + "x" * 2_100: "at most 2,000 characters",
        "y ~ k*x": "is not in this study",
    }
    for formula, said in tried.items():
        asked = urlencode({"analysis": "regression", "f.formula": formula, "run": "1"})
        reply = ana.get(f"{path(study)}?{asked}")
        assert reply.status_code == 422, formula
        assert said in html.unescape(reply.text), formula
        assert "Nothing computed, nothing charged." in reply.text
    hostile = urlencode({"done": 'a=regression&formula="><script>alert(1)</script>'})
    assert "<script>alert" not in ana.get(f"{path(study)}?{hostile}").text
    without = ana.get(f"{path(grouped)}?analysis=regression&f.formula=y+~+x&run=1")
    assert "choose one of a, b, c" in without.text
    many = [f"a=regression&formula=y+~+x+%2B+k&g={i}" for i in range(MOST_ENTRIES)]
    assert f"holds {MOST_ENTRIES} analyses" in compute(ana, study, "partial", many).text


def test_an_export_ends_where_its_reader_has_left(studies: Any) -> None:
    _, study, _ = studies
    analysis, patience = ANALYSES["regression"], Patience(600.0)
    entries = [DeskEntry(analysis, "", {"formula": f"y ~ {name}"}) for name in ("x", "k", "b")]
    with patience.limits():
        made = documents(entries, study)
        next(made)
        patience.leave()
        with pytest.raises(CallerLeft):
            next(made)


def test_a_search_of_subsets_ends_where_its_reader_has_left(studies: Any) -> None:
    _, study, _ = studies
    entry = DeskEntry(ANALYSES["selection"], "", {"response": "y", "candidates": "x, k, b"})
    patience = Patience(600.0)
    with patience.limits():
        assert entry.document(study)["result"]["ranking"]["bic"]
        patience.leave()
        with pytest.raises(CallerLeft):
            entry.document(study)


@pytest.mark.parametrize(
    ("name", "changed", "said"),
    [
        ("robustness", {"f.variations": " , ,"}, "Variations: it is needed"),
        ("partial", {"f.given": "k, y"}, "must all be different"),
        ("partial", {"f.given": "k, k"}, "must all be different"),
    ],
)
def test_commas_alone_and_columns_named_twice_are_refused(
    studies: Any, name: str, changed: dict[str, str], said: str
) -> None:
    bench, study, _ = studies
    reply = compute(signed(bench, "ana"), study, name, **changed)
    assert reply.status_code == 422
    assert said in html.unescape(reply.text)


def test_columns_are_added_by_a_press(studies: Any) -> None:
    """Without a script: a round trip each."""
    bench, study, _ = studies
    ana, text = signed(bench, "ana"), ""
    for column in ("y", "x", "C(g)"):
        asked = urlencode({"analysis": "regression", "f.formula": text, "add": f"formula:{column}"})
        found = re.search(
            r"<textarea[^>]*>([^<]*)</textarea>", ana.get(f"{path(study)}?{asked}").text
        )
        assert found
        text = html.unescape(found[1])
    assert text == "y ~ x + C(g)"
    study_of(study, "").ols(text)


def sent(browser: Browser, content: bytes, name: str = "study.json") -> httpx.Response:
    """A file, by the page's form."""
    token = re.search(r'name="form_token" value="([^"]+)"', browser.get("/workbench/studies").text)
    assert token is not None
    form = {"form_token": token[1]}
    return browser.post("/workbench/studies", data=form, files={"file": (name, content)})


@pytest.mark.slow
def test_a_study_of_a_file_is_analysed_and_seen_by_nobody_else(studies: Any) -> None:
    """As the same study of the server, without scripts that would ask the server for it."""
    bench, study, grouped = studies
    ana, before = signed(bench, "ana"), spent(bench)
    for each in (study, grouped):
        reply = sent(ana, json.dumps(each).encode(), "a&b.json")
        assert reply.status_code == 303, reply.text
        place = reply.headers["location"]
        loaded = {"id": place.rpartition("/")[2]}
        more = {"group": "a"} if each is grouped else {}
        asked = {"f.formula": "y ~ x"}
        done = done_of(compute(ana, loaded, "regression", **asked, **more))
        page = ana.get(f"{place}?{urlencode({'done': done}, doseq=True)}").text
        here = ana.get(f"{path(each)}?{urlencode({'done': done}, doseq=True)}").text
        number = re.compile(r'<td role="cell" class="number"[^>]*>([^<]*)')
        assert number.findall(page) == number.findall(here) != []
        assert "cannot check it" in page
        assert "a_b.json" in page
        assert "export/python" not in page
        assert signed(bench, "bob").get(place).status_code == 404
    assert "a_b.json" in ana.get("/workbench/studies").text
    assert spent(bench) == before


@pytest.mark.slow
def test_what_is_no_study_is_refused_whatever_it_is(studies: Any) -> None:
    bench, study, _ = studies
    ana = signed(bench, "ana")
    lame = {**study, "result": {**study["result"], "terms": ["Intercept", 3]}}
    other = {**study, "created_at": None}
    count = {**study, "query": {"kind": "count"}}
    for content in (
        b"[",
        b"[]",
        b"{}",
        b"\xff",
        *(json.dumps(e).encode() for e in (lame, other, count)),
    ):
        reply = sent(ana, content)
        assert (reply.status_code, "holds no study" in reply.text) == (422, True), content[:40]
    short = {k: v for k, v in study["result"].items() if k != "radius"}
    reply = sent(ana, json.dumps({**study, "result": short}).encode())
    assert reply.status_code in {303, 422}
    for _ in range(MOST_SITES + 2):  # the oldest makes room
        assert sent(ana, json.dumps(study).encode()).status_code == 303
    assert ana.get("/workbench/studies").text.count("study.json</a>") <= MOST_SITES


def of_site(study: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The same numbers as another site's release, of a data set of the same name."""
    return {**study, "id": f"rel_{name}"}


def opened_file(browser: Browser, document: Mapping[str, Any], name: str) -> str:
    """The id of a file on the desk."""
    reply = sent(browser, json.dumps(document).encode(), name)
    assert reply.status_code == 303, reply.text
    return str(reply.headers["location"].rpartition("/")[2])


def pool_of(browser: Browser, ids: list[str]) -> httpx.Response:
    """The list's form, sent."""
    return browser.get(f"/workbench/studies/pool?{urlencode({'study': ids}, doseq=True)}")


NUMBERS = re.compile(r'<td role="cell" class="number" data-name="(?!Records|ε)[^"]*">([^<]*)')


@pytest.mark.slow
def test_studies_of_several_sites_are_pooled_for_nothing(studies: Any, tmp_path: Path) -> None:
    """One's own and those of files, by the client's numbers; the pool is a file, too."""
    bench, study, _ = studies
    ana, before = signed(bench, "ana"), spent(bench)
    north, south = of_site(study, "north"), of_site(study, "south")
    north["result"] = {**north["result"], "n": 2 * north["result"]["n"]}
    ids = [study["id"], opened_file(ana, north, "north.json"), opened_file(ana, south, "s.json")]
    listed = ana.get("/workbench/studies").text
    assert all(f'value="{each}" form="pool"' in listed for each in ids)
    place = pool_of(ana, ids)
    assert place.headers["location"] == f"/workbench/studies/{BETWEEN.join(ids)}"
    pooled = {"id": BETWEEN.join(ids)}
    done = done_of(compute(ana, pooled, "regression", **{"f.formula": "y ~ x + site"}))
    fields = {"analysis": "heterogeneity", "run": "1", "f.formula": "y ~ x", "done": done}
    reply = ana.get(f"{path(pooled)}?{urlencode(fields, doseq=True)}")
    page = ana.get(reply.headers["location"]).text
    found = reticent.pool({"people": Study(study), "north": Study(north), "s": Study(south)})
    fit, meta = found.ols("y ~ x + site"), found.heterogeneity("y ~ x")["x"]
    shown = NUMBERS.findall(html.unescape(page))
    for number in (fit.params["x"], fit.bse["site[north]"], meta.estimate, meta.bse[1]):
        assert f"{number:.4g}".replace("-", "\N{MINUS SIGN}") in shown
    assert "the file <code>north.json" in page
    assert "cannot check them" in page
    kept = ana.get(f"{path(pooled)}/export/pool")
    (tmp_path / "pool.json").write_bytes(kept.content)
    again = reticent.load_pooled(tmp_path / "pool.json")
    assert list(again.ols("y ~ x + site").bse) == list(fit.bse)
    back = {"id": opened_file(ana, json.loads(kept.content), "pool.json")}
    reopened = f"{path(back)}?{urlsplit(reply.headers['location']).query}"
    assert NUMBERS.findall(html.unescape(ana.get(reopened).text)) == shown
    assert ana.get(f"{path(pooled)}/export/csv?{urlsplit(reopened).query}").status_code == 200
    assert ana.get(f"{path(pooled)}/export/python?{urlsplit(reopened).query}").status_code == 404
    assert signed(bench, "bob").get(path(pooled)).status_code == 404
    assert spent(bench) == before


@pytest.mark.slow
def test_what_is_no_pool_is_refused(studies: Any) -> None:
    """People who would count twice, groups, one study, a pool of pools, and what is made up."""
    bench, study, grouped = studies
    ana = signed(bench, "ana")
    same, other = (opened_file(ana, each, "a.json") for each in (study, of_site(study, "b")))
    big = of_site(study, "big")
    big["result"] = {**big["result"], "moments": [[1e400]]}
    content = {"format": "reticent pooled study 1", "weights": "people"}
    both = {"a": study, "b": of_site(study, "b")}
    nested = opened_file(ana, {**content, "sites": both}, "pool.json")
    for ids, said in (
        ([study["id"]], "Choose two studies or more"),
        ([study["id"], study["id"]], "Choose two studies or more"),
        ([study["id"], f"{other}{BETWEEN}{same}"], "Choose two studies or more"),
    ):
        assert (pool_of(ana, ids).status_code, said in pool_of(ana, ids).text) == (422, True)
    for ids, said in (
        ([study["id"], same], "count twice"),
        ([study["id"], grouped["id"]], "of the same people"),
        ([other, grouped["id"]], "by groups"),
        ([other, opened_file(ana, of_site(grouped, "b"), "c.json")], "count twice"),
        ([study["id"], nested], "a pool already"),
        (["rel_no", other], ""),
    ):
        reply = ana.get(path({"id": BETWEEN.join(ids)}))
        assert (reply.status_code in {404, 422}, said in reply.text) == (True, True), reply.text
    files = [
        {**content, "sites": sites}
        for sites in (
            {},
            {"a": study},
            {"a": study, "b": study},
            {"a": study, "b": {}},
            {"a": study, "b": None},
            {"a": study, "b": {**of_site(study, "b"), "result": {"terms": [], "n": 1}}},
            {f"s{k}": of_site(study, str(k)) for k in range(MOST_SITES + 1)},
            [study],
            None,
        )
    ]
    for document in [*files, {**files[2], "weights": "none"}, {"format": content["format"]}, big]:
        reply = sent(ana, json.dumps(document).encode(), "made.json")
        assert reply.status_code == 422, document
    posing = {"sites": "x", "loaded": {}, "released_id": [], "published": {}}
    poser = opened_file(ana, {**of_site(study, "p"), **posing}, "p.json")
    assert ana.get(path({"id": poser})).status_code == 200
    assert ana.get(path({"id": f"{poser}{BETWEEN}{other}"})).status_code == 200
    assert "heterogeneity" not in ana.get(path(study)).text
    asked = urlencode({"done": "a=heterogeneity&formula=y ~ x"})
    assert "Heterogeneity" not in ana.get(f"{path(study)}?{asked}").text


def test_a_pool_of_more_than_a_page_can_compute_is_refused(
    studies: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the least number that the same two sites are beyond; the client pools them."""
    bench, study, _ = studies
    ana = signed(bench, "ana")
    pooled = {"id": f"{study['id']}{BETWEEN}{opened_file(ana, of_site(study, 'b'), 'b.json')}"}
    numbers = 2 * len(study["result"]["moments"]) ** 2
    monkeypatch.setattr(pools, "MOST_NUMBERS", numbers)
    assert ana.get(path(pooled)).status_code == 200
    monkeypatch.setattr(pools, "MOST_NUMBERS", numbers - 1)
    reply = ana.get(path(pooled))
    assert (reply.status_code, "too many columns" in reply.text) == (422, True)


def test_sites_have_names_of_their_own() -> None:
    named = site_names({"1": "bp", "2": "bp.json", "3": "bp-2", "4": ".json", "5": "bp"})
    assert named == {"1": "bp", "2": "bp-2", "3": "bp-2-2", "4": ".json", "5": "bp-3"}


@pytest.mark.slow
def test_a_study_is_its_owner_s_until_it_is_published(studies: Any) -> None:
    """Published, it is read by all with a grant, who get a script that finds it."""
    bench, study, grouped = studies
    bob = signed(bench, "bob")  # who has no grant
    token = {"done": "a=correlations"}
    places = [path(study), f"{path(study)}/export/csv?{urlencode(token)}", path({"id": "rel_no"})]
    assert [bob.get(each).status_code for each in places] == [404, 404, 404]
    bench.services.catalog.publish(study["id"], "people", by="t")
    assert [bob.get(each).status_code for each in places] == [404, 404, 404]
    access = bench.services.access
    access.grant(access.analyst("bob").id, "people", by="t")
    assert [bob.get(each).status_code for each in places] == [200, 200, 404]
    assert study["id"] in bob.get("/workbench/studies").text
    assert bob.get(path(grouped)).status_code == 404
    assert grouped["id"] not in bob.get("/workbench/studies").text
    script = bob.get(f"{path(study)}/export/python?{urlencode(token)}").text
    assert 'client.dataset("people").published() if each.id ==' in script
    assert bob.get(f"{path(study)}/export/r?{urlencode(token)}").status_code == 404
    assert (
        "open the study desk" in signed(bench, "ana").get(f"/workbench/releases/{study['id']}").text
    )


OTHER_STUDIES = {"mixed"}
"""Analyses that a study of rows does not have."""


@pytest.mark.parametrize("name", sorted(set(ASKED) - OTHER_STUDIES))
def test_an_analysis_ends_where_its_reader_has_left(studies: Any, name: str) -> None:
    """After it has begun: each looks again and again whether anybody waits."""
    _, study, _ = studies
    looked = 0

    def left() -> bool:
        nonlocal looked
        looked += 1
        return looked > 1

    with Patience(600.0, left).limits(), pytest.raises(CallerLeft):
        DeskEntry(ANALYSES[name], "", ASKED[name]).document(study)


def test_a_structural_model_that_would_fill_the_memory_is_refused(studies: Any) -> None:
    bench, _, _ = studies
    ana = signed(bench, "ana")
    address = sent(ana, widest_study()).headers["location"]
    for columns in (MOST_STRUCTURAL + 1, COLUMNS):
        model = f"f =~ {' + '.join(f'v{k}' for k in range(columns))}"
        asked = {"analysis": "structural", "run": "1", "f.model": model}
        reply = ana.get(f"{address}?{urlencode(asked)}")
        assert reply.status_code == 422
        assert f"at most {MOST_STRUCTURAL} columns" in reply.text


def test_a_file_of_more_columns_than_a_study_has_is_refused(studies: Any) -> None:
    bench, study, by_group = studies
    ana = signed(bench, "ana")
    for document, more in ((study, MOST_TERMS), (by_group, MOST_COLUMNS // 3 - 2)):
        names = [*document["result"]["terms"], *(f"more{k}" for k in range(more))]
        result = document["result"] | {"terms": names}
        reply = sent(ana, json.dumps(document | {"result": result}).encode())
        assert reply.status_code == 422
        assert f"at most {MOST_TERMS} columns" in reply.text
