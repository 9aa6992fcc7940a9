# SPDX-License-Identifier: Apache-2.0
"""A key from the environment, certificates, a proxy, and errors that point at the formula."""

import socket
import sys
from pathlib import Path
from threading import Thread

import httpx
import pytest

import reticent
from reticent._caret import pointed
from reticent._text import p_value, whole
from support.client.replying_server import DATASET, Server, problem, release

SENTENCE = "At position 5 of the formula: unknown column."


def sent_key(monkeypatch: pytest.MonkeyPatch, **environment: str) -> str:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    seen: list[httpx.Request] = []

    def reply(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json=DATASET)

    client = reticent.Client("http://server.test", transport=httpx.MockTransport(reply))
    client.dataset("houses")
    return seen[0].headers["Authorization"]


def test_the_key_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("rk_file\n")
    file = str(tmp_path / "key")
    assert sent_key(monkeypatch, RETICENT_KEY_FILE=file) == "Bearer rk_file"
    assert sent_key(monkeypatch, RETICENT_KEY="rk_own", RETICENT_KEY_FILE=file) == "Bearer rk_own"


def test_without_a_key_the_error_says_where_one_may_stand(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("RETICENT_KEY", raising=False)
    monkeypatch.delenv("RETICENT_KEY_FILE", raising=False)
    with pytest.raises(reticent.Unauthorized, match="set RETICENT_KEY to it"):
        reticent.Client("http://server.test")
    monkeypatch.setenv("RETICENT_KEY_FILE", str(tmp_path / "absent"))
    with pytest.raises(reticent.Unauthorized, match="cannot be read: No such file"):
        reticent.Client("http://server.test")
    (tmp_path / "bytes").write_bytes(b"rk_secret\xff")
    monkeypatch.setenv("RETICENT_KEY_FILE", str(tmp_path / "bytes"))
    with pytest.raises(reticent.Unauthorized, match="not a text") as refused:
        reticent.Client("http://server.test")
    assert "rk_secret" not in str(refused.value)


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_of_certificates_that_is_none(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(reticent.TransportError, match="cannot be read"):
        reticent.Client("https://server.test", "rk", verify=str(file))


def test_a_proxy_that_is_no_address() -> None:
    with pytest.raises(reticent.TransportError, match="of the proxy is not usable"):
        reticent.Client("https://server.test", "rk", proxy="no address")


def test_an_error_points_at_the_place_in_the_formula(server: Server) -> None:
    ds = server.dataset()
    server.answer = lambda _: problem(422, "invalid_formula", detail=SENTENCE)
    with pytest.raises(reticent.InvalidFormula) as refused:
        ds.linear_regression("y ~ secret", epsilon=1)
    sentence, text, caret = str(refused.value).splitlines()
    assert sentence.startswith(f"{SENTENCE} There is no column y;")
    assert text[caret.index("^") :] == "secret"
    assert refused.value.detail == sentence


@pytest.mark.parametrize(
    ("sentence", "query", "shown"),
    [
        (SENTENCE, {"formula": "y ~\nx"}, "    y ~ x\n        ^"),
        ("At position 3 of the where condition: x.", {"where": "a >"}, "    a >\n      ^"),
        ("At position 2 of the formula: x.", {"main": "a"}, "    a\n     ^"),
        ("At position 9 of the formula: x.", {"formula": "y ~ x"}, None),
        ("At position 1 of the where condition: x.", {"formula": "y ~ x"}, None),
        ("At position 1 of the hypothesis: x.", {"formula": "y ~ x"}, None),
        ("No place.", {"formula": "y ~ x"}, None),
        (SENTENCE, {"formula": 3}, None),
    ],
)
def test_where_the_caret_stands(sentence: str, query: dict[str, object], shown: str | None) -> None:
    expected = sentence if shown is None else f"{sentence}\n{shown}"
    assert pointed(sentence, query) == expected
    assert pointed(sentence, {}) == sentence


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "p < .001"), (0.0312, "p = 0.031"), (float("nan"), "p = –"), (None, "p = –")],
)
def test_a_p_value_in_a_sentence(value: float | None, text: str) -> None:
    assert p_value(value) == text


def test_a_noisy_count_is_a_whole_number() -> None:
    assert (whole(12345.0), whole(-3.0), whole(float("inf"))) == ("12,345", "-3", "–")


def test_releases_are_a_list_with_a_line_for_each(server: Server) -> None:
    client = server.client()
    long = release(
        query={"kind": "linear_regression", "formula": "y ~ " + " + ".join("abcdefghijkl")}
    )
    server.always(200, {"releases": [release("mean"), long], "next_offset": None})
    shown = repr(client.releases()).splitlines()
    assert len(shown) == 4
    assert "mean" in shown[2]
    assert "price" in shown[2]
    assert "2026-01-02 03:04" in shown[2]
    assert shown[3].count("…") == 1
    assert "<table>" in client.releases()._repr_html_()
    server.always(200, {"releases": [], "next_offset": None})
    assert repr(client.releases()) == "No releases yet."


def with_proxies(monkeypatch: pytest.MonkeyPatch, **environment: str) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


def test_a_proxy_that_is_away_is_named_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_proxies(monkeypatch, HTTP_PROXY="http://ana:hidden@127.0.0.1:1")
    client = reticent.Client("http://server.test", "rk", retries=0)
    with pytest.raises(reticent.TransportError) as failed:
        client.datasets()
    said = str(failed.value)
    assert "by the proxy http://127.0.0.1:1" in said
    assert "HTTP_PROXY" in said
    assert "hidden" not in said


@pytest.mark.parametrize("past", ["server.test", ".test", "*", ""])
def test_a_proxy_for_which_there_is_no_library(monkeypatch: pytest.MonkeyPatch, past: str) -> None:
    """It is one sentence; and it is no matter where the server is asked without it."""
    monkeypatch.setitem(sys.modules, "socksio", None)  # as where it is not installed
    with_proxies(monkeypatch, ALL_PROXY="socks5://127.0.0.1:1", NO_PROXY=past)
    if past:
        reticent.Client("http://server.test", "rk").close()
        return
    with pytest.raises(reticent.TransportError, match=r"speaks SOCKS.*httpx\[socks\]"):
        reticent.Client("http://server.test", "rk")


def test_a_server_that_needs_no_proxy_is_asked_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_proxies(monkeypatch, HTTP_PROXY="http://127.0.0.1:1", NO_PROXY="127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def serve() -> None:
            with listener.accept()[0] as connection:
                connection.recv(1 << 16)
                body = b'{"datasets": []}'
                head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
                connection.sendall(head + body)

        thread = Thread(target=serve)
        thread.start()
        client = reticent.Client(f"http://127.0.0.1:{port}", "rk", retries=0)
        assert list(client.datasets()) == []
        client.close()
        thread.join()
