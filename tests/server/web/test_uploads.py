# SPDX-License-Identifier: Apache-2.0
"""Forms with a file, in pieces of any size, and what is no such form."""

from collections.abc import Mapping

import pytest

from reticent_server.errors import InvalidRequest, PolicyRefused, ReticentError
from reticent_server.web.uploads import FileForm, TooLong

TYPE = "multipart/form-data; boundary=xYz"
CONTENT = b"a,b\r\n--xY\r\n1,2\r\n"


class Kept:
    def __init__(self) -> None:
        self.data = b""
        self.dropped = False

    def write(self, data: bytes) -> None:
        self.data += data

    def drop(self) -> None:
        self.dropped = True


def part(name: str, content: bytes, filename: str | None = None) -> bytes:
    file = "" if filename is None else f'; filename="{filename}"'
    head = f'--xYz\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'
    return head.encode() + content + b"\r\n"


def body(*parts: bytes) -> bytes:
    return b"".join(parts) + b"--xYz--\r\n"


def made(
    limit: int = 1000, content_type: str = TYPE
) -> tuple[FileForm, list[tuple[str, str]], Kept]:
    opened: list[tuple[str, str]] = []
    kept = Kept()

    def sink(fields: Mapping[str, str], name: str) -> Kept:
        opened.append((fields.get("form_token", ""), name))
        return kept

    return FileForm(content_type, sink, limit), opened, kept


@pytest.mark.parametrize("size", [1, 3, 7, 10_000])
def test_a_form_in_pieces(size: int) -> None:
    form, opened, kept = made()
    whole = body(part("form_token", b" t "), part("file", CONTENT, "a.csv"))
    for at in range(0, len(whole), size):
        form.feed(whole[at : at + size])
    form.finish()
    assert (opened, kept.data) == ([("t", "a.csv")], CONTENT)


def test_the_fields_before_the_file_are_known_when_it_begins() -> None:
    form, opened, _ = made()
    form.feed(body(part("file", CONTENT, "a.csv"), part("form_token", b"late")))
    assert opened == [("", "a.csv")]


@pytest.mark.parametrize(
    "sent",
    [
        body(part("form_token", b"t")),
        body(part("file", b"", "a.csv")),
        body(part("file", b"", "")),
        part("file", CONTENT, "a.csv"),
        b"",
        b"a=b",
        body(part("a", b"1"), part("a", b"1"), part("file", CONTENT, "a.csv")),
        body(part("file", CONTENT, "a.csv"), part("file", CONTENT, "b.csv")),
        body(part("a", b"x" * 5000), part("file", CONTENT, "a.csv")),
        body(*(part(f"f{i}", b"1") for i in range(9)), part("file", CONTENT, "a.csv")),
    ],
)
def test_what_is_no_such_form(sent: bytes) -> None:
    form, _, _ = made()
    with pytest.raises(InvalidRequest):
        feed(form, sent)


def feed(form: FileForm, sent: bytes) -> None:
    form.feed(sent)
    form.finish()


def test_other_types_are_refused() -> None:
    for kind in ("", "text/csv", "multipart/form-data", "application/x-www-form-urlencoded"):
        with pytest.raises(InvalidRequest):
            made(content_type=kind)


def test_the_limit_is_of_the_file() -> None:
    sent = body(part("form_token", b"t"), part("file", CONTENT, "a.csv"))
    feed(made(len(CONTENT))[0], sent)
    form, _, kept = made(len(CONTENT) - 1)
    with pytest.raises(TooLong):
        form.feed(sent)
    assert len(kept.data) < len(CONTENT)


def test_what_refuses_the_fields_ends_the_form() -> None:
    def refuses(_: Mapping[str, str], __: str) -> Kept:
        raise PolicyRefused("no")

    form = FileForm(TYPE, refuses, 1000)
    with pytest.raises(ReticentError, match="no"):
        form.feed(body(part("file", CONTENT, "a.csv")))
