# SPDX-License-Identifier: Apache-2.0
"""A server below a path of another site: no link, form, redirection or cookie leads out of the
path, behind a proxy that takes it from requests.

The configurations of Caddy and nginx are those of docs/how-to/deploy.md.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import cast
from urllib.parse import urljoin, urlsplit

import httpx
import pytest
from pydantic import ValidationError

import reticent
import reticent_server
from reticent_server.access.identities import Identities
from reticent_server.access.oidc.composing import single_sign_on
from reticent_server.domain.clock import SystemClock
from reticent_server.errors import CuratorError
from reticent_server.settings import Settings
from support.documents.code_blocks import ROOT, blocks
from support.installations.console import Desk, History, console, history
from support.installations.in_thread import loopback
from support.installations.single_sign_on import link, with_provider
from support.processes.identity_provider import identity_provider
from support.processes.waiting import until

__all__ = ["history"]

BASE = "/reticent"
WAIT = 60.0
"""Seconds: a busy machine is no failure."""

PAGES = Path(reticent_server.__file__).parent
LEADS = {"href", "src", "action", "formaction", "hx-get", "hx-post"}


class Stripping(httpx.HTTPTransport):
    """A proxy in one line: it takes the path from requests, and has nothing at other paths."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.decode()
        if not path.startswith(f"{BASE}/"):
            return httpx.Response(404, text=f"{path} is of another site")
        url = request.url.copy_with(raw_path=path.removeprefix(BASE).encode())
        parts = {"headers": request.headers, "stream": request.stream}
        return super().handle_request(
            httpx.Request(request.method, url, **parts, extensions=request.extensions)
        )


class Links(HTMLParser):
    """pages: where a page leads, or takes something from. forms: where it sends something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.pages: list[str] = []
        self.forms: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        for name in LEADS & given.keys():
            asks_first = name in {"action", "formaction", "hx-post"}
            (self.forms if asks_first else self.pages).append(given[name])
        if given.get("http-equiv") == "refresh" and "url=" in given["content"]:
            self.pages.append(given["content"].partition("url=")[2])


class Visitor:
    """A browser that follows nothing by itself, and fails at what leads out of the path."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client

    def place(self, told: str, of: str) -> str:
        """The path of the site to which a page leads."""
        found = urlsplit(urljoin(urljoin(str(self.client.base_url), of), told))
        assert found.path.startswith(f"{BASE}/"), f"{of} leads to {told}"
        return found._replace(scheme="", netloc="", fragment="").geturl()

    def get(self, path: str) -> httpx.Response:
        reply = self.client.get(path)
        while reply.is_redirect:
            assert reply.headers["location"].startswith(f"{BASE}/"), (path, reply.headers)
            reply = self.client.get(reply.headers["location"])
        return reply

    def sign_in(self, path: str, key: str) -> None:
        page = self.get(path)
        (form,) = Links(page.text).forms
        token = re.search(r'name="form_token" value="([0-9a-f]{96})"', page.text)
        assert token
        origin = str(self.client.base_url).rstrip("/")
        fields = {"form_token": token[1], "key": key, "next": path.removeprefix(BASE)}
        reply = self.client.post(form, data=fields, headers={"Origin": origin})
        assert reply.status_code == 303, reply.text
        assert reply.headers["location"] == path

    def crawl(self, start: str) -> set[str]:
        """The paths of all pages and files to which links lead from a page on, each asked for once;
        the places of forms are looked at, and nothing is sent there."""
        wait, seen = [start], {start}
        while wait:
            path = wait.pop()
            reply = self.get(path)
            assert reply.status_code == 200, (path, reply.text)
            if not reply.headers["content-type"].startswith("text/html"):
                continue
            links = Links(reply.text)
            for form in links.forms:
                self.place(form, path)
            for place in links.pages:
                page = self.place(place, path)
                if page.partition("?")[0] not in {each.partition("?")[0] for each in seen}:
                    seen.add(page)
                    wait.append(page)
        return {each.partition("?")[0].removeprefix(BASE) for each in seen}


def changed(settings: Settings, **changes: object) -> Settings:
    return Settings(**{**settings.model_dump(), "root_path": BASE, **changes})


@pytest.fixture(scope="module")
def below(history: History, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    copied = history.copied(tmp_path_factory.mktemp("below") / "desk")
    own = copied.installation.settings
    with console(copied, lambda _: changed(own), reads=True) as desk:
        yield desk


@dataclass(frozen=True)
class Front:
    """The whole site, of which the server has one path. through: what makes the way there."""

    url: str
    through: Callable[[], httpx.BaseTransport] = httpx.HTTPTransport

    def browser(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, transport=self.through(), timeout=WAIT)


@pytest.fixture(params=["a stand-in", "caddy", "nginx"])
def front(request: pytest.FixtureRequest, below: Desk, tmp_path: Path) -> Iterator[Front]:
    if request.param == "a stand-in":
        yield Front(below.url, Stripping)
        return
    if shutil.which(request.param) is None:
        pytest.skip(f"no {request.param}")
    with proxy(request.param, below.url, tmp_path) as url:
        yield Front(url)


@contextmanager
def proxy(name: str, server: str, folder: Path) -> Iterator[str]:
    """A proxy as docs/how-to/deploy.md configures it, in front of the server."""
    title = {"caddy": "Caddyfile", "nginx": "reticent.conf"}[name]
    page = blocks(ROOT / "docs/how-to/deploy.md")
    (text,) = [block.text for block in page if block.title == title]
    with loopback() as free:
        place = f"127.0.0.1:{free.getsockname()[1]}"
    text = text.replace("127.0.0.1:8000", urlsplit(server).netloc)
    config = folder / title
    if name == "caddy":
        text = "{\n\tadmin off\n}\n" + text.replace("stats.example.org", f"http://{place}")
        words = ["caddy", "run", "--adapter", "caddyfile", "--config", str(config)]
    else:
        own = "".join(
            f"{each}_temp_path {folder};\n"
            for each in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        text = (
            f"daemon off;\npid {folder}/pid;\nerror_log stderr;\nevents {{}}\n"
            f"http {{\naccess_log off;\n{own}server {{\nlisten {place};\n{text}}}\n}}\n"
        )
        words = ["nginx", "-e", "stderr", "-c", str(config)]
    config.write_text(text)
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(words, env={**os.environ, "HOME": str(folder)}, stderr=log)
    try:
        until(lambda: answers(f"http://{place}"))
        yield f"http://{place}"
    finally:
        running.terminate()
        running.wait(WAIT)


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=WAIT).status_code > 0
    except httpx.ConnectError:
        return False


def test_every_page_is_below_the_path(front: Front, history: History) -> None:
    """Of the verification page, the workbench and the console, with scripts and styles."""
    ana = history.installation.keys["ana"]
    with front.browser() as browser:
        visitor = Visitor(browser)
        assert visitor.get(f"{BASE}/").url.path == f"{BASE}/workbench/sign-in"
        assert "/verify/static/pages.css" in visitor.crawl(f"{BASE}/verify")
        visitor.sign_in(f"{BASE}/workbench/", ana)
        paths = visitor.crawl(f"{BASE}/workbench/")
        assert {"/workbench/static/workbench.js", "/workbench/datasets/people"} <= paths
        assert any(re.fullmatch("/workbench/releases/[^/]+/export/python", each) for each in paths)
        visitor.sign_in(f"{BASE}/console/", history.key)
        paths = visitor.crawl(f"{BASE}/console/")
        assert {"/console/static/htmx.min.js", "/console/analysts/ana", "/console/ledger"} <= paths
        assert {cookie.path for cookie in browser.cookies.jar} == {f"{BASE}/"}


def test_both_clients_ask_below_the_path(front: Front, history: History) -> None:
    """Of a request over HTTP, the Location is the release's; the Python client, whose address is
    the site's with the path, reads the same one; an export has that address, too."""
    key = history.installation.keys["ana"]
    with front.browser() as browser:
        reply = browser.post(
            f"{BASE}/v1/releases",
            json={"dataset": "people", "query": {"kind": "count"}, "privacy": {"epsilon": 0.5}},
            headers={"Authorization": f"Bearer {key}"},
        )
        assert reply.status_code == 201, reply.text
        made = reply.json()["id"]
        assert reply.headers["location"] == f"{BASE}/v1/releases/{made}"
        visitor = Visitor(browser)
        visitor.sign_in(f"{BASE}/workbench/", key)
        script = visitor.get(f"{BASE}/workbench/releases/{made}/export/python").text
        assert f'"{front.url}{BASE}"' in script
    with reticent.Client(front.url + BASE, key=key, transport=front.through()) as client:
        assert client.release(made).id == made


def test_a_part_of_a_page_sends_the_whole_page_to_sign_in(below: Desk) -> None:
    reply = httpx.get(f"{below.url}/console/ledger", headers={"HX-Request": "true"}, timeout=WAIT)
    assert reply.headers["hx-redirect"] == f"{BASE}/console/sign-in?next=/console/"


def test_cookies_are_for_the_path_alone(below: Desk) -> None:
    """A browser takes a name that begins with __Host- only with the path "/"."""
    for host, name in (("127.0.0.1", ""), ("stats.example.org", "__Secure-")):
        page = httpx.get(f"{below.url}/workbench/sign-in", headers={"Host": host}, timeout=WAIT)
        cookie = page.headers["set-cookie"]
        assert cookie.startswith(f"{name}reticent-workbench=")
        assert f"; Path={BASE}/;" in cookie
        assert ("; Secure" in cookie) is bool(name)


def test_the_identity_provider_sends_the_browser_back_below_the_path(
    history: History, tmp_path: Path
) -> None:
    callback = f"{BASE}/workbench/oidc/callback"
    copied = history.copied(tmp_path / "desk")
    with identity_provider() as provider:

        def settings_of(port: int) -> Settings:
            provider.redirect = f"http://127.0.0.1:{port}{callback}"
            own = {"oidc_redirect_url": "", "oidc_workbench_redirect_url": provider.redirect}
            own |= {"root_path": BASE}
            return with_provider(copied.installation.settings, provider, tmp_path, **own)

        with console(copied, settings_of) as desk:
            provider.now = lambda: desk.clock.now().timestamp()
            provider.claims["sub"] = "s-ana"
            link(desk.services, provider, "ana", "s-ana")
            with Front(desk.url, Stripping).browser() as browser:
                begun = browser.get(f"{BASE}/workbench/oidc/sign-in")
                back = httpx.get(begun.headers["location"], timeout=WAIT).headers["location"]
                assert urlsplit(back).path == callback
                page = browser.get(back)
                assert Links(page.text).pages.count(f"{BASE}/workbench/") == 3, page.text
                assert browser.get(f"{BASE}/workbench/").status_code == 200


@pytest.mark.parametrize("path", ["", "/x", BASE])
def test_an_address_to_come_back_to_has_the_path(path: str, tmp_path: Path) -> None:
    url = f"https://stats.example.org{path}/console/oidc/callback"
    settings = Settings(
        root_path=BASE,
        oidc_issuer="https://id.example.org",
        oidc_client_id="reticent",
        oidc_redirect_url=url,
    )
    identities = cast(Identities, None)
    if path == BASE:
        assert single_sign_on(settings, identities, SystemClock()).flow is not None
        return
    with pytest.raises(CuratorError, match=r"has RETICENT_ROOT_PATH \(/reticent\) between"):
        single_sign_on(settings, identities, SystemClock())


@pytest.mark.parametrize("path", ["", BASE, "/apps/reticent-1.0_a"])
def test_a_path_has_plain_segments(path: str) -> None:
    assert Settings(root_path=path).root_path == path


@pytest.mark.parametrize(
    "path",
    ["reticent", "/", "/reticent/", "//evil.example", "/a//b", "/a/../b", "/.a", "/a b", "/a\n",
     '/a"', "/a{", "/a%2f", "/ä", "https://a.example/b"],
)  # fmt: skip
def test_other_paths_are_refused(path: str) -> None:
    with pytest.raises(ValidationError):
        Settings(root_path=path)


def test_the_interface_s_document_names_the_path(below: Desk) -> None:
    document = httpx.get(f"{below.url}/openapi.json", timeout=WAIT).json()
    assert document["servers"] == [{"url": BASE}]


def test_no_template_and_no_script_forgets_the_path() -> None:
    """What leads to a page begins with the path, or stays on the page."""
    told = 0
    for template in sorted(PAGES.rglob("templates/*.html")):
        for name, value in re.findall(r'([\w-]+)="([^"]*)', template.read_text("utf-8")):
            leads = name in LEADS or (name == "content" and "url=" in value)
            if leads and not value.startswith("#"):
                told += 1
                assert value.removeprefix("0; url=").startswith("{{ base }}"), (template, value)
    assert told > 100
    scripts = [each for each in PAGES.rglob("static/*.js") if each.name != "htmx.min.js"]
    assert len(scripts) > 1
    for script in scripts:
        assert not re.search(r"""["'`]/[a-z]|location|fetch\(""", script.read_text("utf-8")), script
    for style in PAGES.rglob("static/*.css"):
        assert not re.search(r"url\(['\"]?/", style.read_text("utf-8")), style
