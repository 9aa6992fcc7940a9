# SPDX-License-Identifier: Apache-2.0
"""A form with a file (RFC 7578), read as it comes: nothing of the file is kept in memory or
elsewhere on the way.

The form's other fields stand before the file, so that its token is known before the first byte is
written.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from types import MappingProxyType
from typing import Protocol

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect

from reticent_server.errors import InvalidRequest, ReticentError

MAX_EDITOR_BYTES = 2 << 20
"""Of a schema's form: twice what 1,024 levels of 256 characters take, URL-encoded, in one
column."""

LONGER: Mapping[str, int | None] = MappingProxyType(
    {
        "/console/tables": None,
        "/console/tables/": MAX_EDITOR_BYTES,
        "/workbench/studies": None,
    }
)
"""Limits of bodies that are not those of other requests; None: read here."""

FORGOTTEN = 2
"""How many times its limit is read of a file that is refused: who is still sending would miss the
reply."""

_MAX_FIELD = 4096
_MAX_FIELDS = 8
"""Bytes of a field beside the file, and how many of them: a token and two names are sent."""

_UNREADABLE = "The form cannot be read."
_NO_FILE = "Choose a file."


class TooLong(ReticentError):
    """A file of more bytes than are taken, or one that comes too slowly."""

    code, status, title = "too_large", 413, "File too large"


class Sink(Protocol):
    """Where the bytes of an upload go."""

    def write(self, data: bytes, /) -> None:
        """Takes the next bytes."""

    def drop(self) -> None:
        """Forgets what was written."""
        ...


class FileForm:
    """Takes the parts of a form. opened: makes the sink of the file from the fields before it and
    its name; what it raises ends the form."""

    def __init__(
        self, content_type: str, opened: Callable[[Mapping[str, str], str], Sink], limit: int
    ) -> None:
        """limit: bytes of the file. Raises InvalidRequest for another type."""
        kind, options = parse_options_header(content_type)
        if kind != b"multipart/form-data" or not options.get(b"boundary"):
            raise InvalidRequest("A file is sent as multipart/form-data.")
        self._opened, self._limit = opened, limit
        self.fields: dict[str, str] = {}
        self.sink: Sink | None = None
        self._written = 0
        self._header, self._value = b"", b""
        self._disposition = b""
        self._name = ""
        self._text = bytearray()
        self._is_file = self._is_whole = False
        self._parser = MultipartParser(
            options[b"boundary"],
            {
                "on_part_begin": self._begin,
                "on_header_field": self._field,
                "on_header_value": self._header_value,
                "on_header_end": self._header_end,
                "on_headers_finished": self._headers_finished,
                "on_part_data": self._data,
                "on_part_end": self._end,
                "on_end": self._whole,
            },
        )

    def feed(self, data: bytes) -> None:
        """Raises ReticentError."""
        try:
            self._parser.write(data)
        except FormParserError:
            raise InvalidRequest(_UNREADABLE) from None

    def finish(self) -> None:
        """Raises InvalidRequest where the form broke off, or had no file."""
        if not self._is_whole:
            raise InvalidRequest(_UNREADABLE)
        if self.sink is None or not self._written:
            raise InvalidRequest(_NO_FILE)

    def _begin(self) -> None:
        self._disposition, self._text, self._is_file = b"", bytearray(), False
        if len(self.fields) >= _MAX_FIELDS:
            raise InvalidRequest(_UNREADABLE)

    def _field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_end(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition = self._value
        self._header, self._value = b"", b""

    def _headers_finished(self) -> None:
        _, options = parse_options_header(self._disposition)
        self._name = options.get(b"name", b"").decode("utf-8", "replace")
        filename = options.get(b"filename")
        if filename is None:
            return
        if self.sink is not None:
            raise InvalidRequest("Send one file at a time.")
        if not filename:
            raise InvalidRequest(_NO_FILE)
        self._is_file = True
        self.sink = self._opened(self.fields, filename.decode("utf-8", "replace"))

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._is_file and self.sink is not None:
            self._written += end - start
            if self._written > self._limit:
                raise TooLong(f"A file may have at most {self._limit} bytes.")
            self.sink.write(data[start:end])
            return
        self._text += data[start:end]
        if len(self._text) > _MAX_FIELD:
            raise InvalidRequest(_UNREADABLE)

    def _end(self) -> None:
        if self._is_file:
            return
        if self._name in self.fields:
            raise InvalidRequest("The form holds a field twice.")
        self.fields[self._name] = self._text.decode("utf-8", "replace").strip()

    def _whole(self) -> None:
        self._is_whole = True


async def receive(request: Request, form: FileForm, limit: int, seconds: float) -> None:
    """Feeds the body to the form. Raises what the form does, TooLong; the sink is dropped then."""
    try:
        async with asyncio.timeout(seconds):
            await _fed(request.stream(), form, limit)
        form.finish()
    except TimeoutError:
        _drop(form)
        raise TooLong(f"A file must arrive within {seconds:g} seconds.") from None
    except ClientDisconnect:
        _drop(form)
        raise InvalidRequest(_UNREADABLE) from None
    except BaseException:
        _drop(form)
        raise


async def _fed(chunks: AsyncGenerator[bytes, None], form: FileForm, limit: int) -> None:
    """Of a form that is refused the rest is read and forgotten."""
    length, problem = 0, None
    async for chunk in chunks:
        length += len(chunk)
        if length > FORGOTTEN * (limit + _MAX_FIELD * _MAX_FIELDS):
            break
        if problem is None and chunk:
            try:
                await run_in_threadpool(form.feed, chunk)
            except ReticentError as error:
                problem = error
                _drop(form)
    if problem is not None:
        raise problem


def _drop(form: FileForm) -> None:
    if form.sink is not None:
        form.sink.drop()
