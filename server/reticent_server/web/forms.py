# SPDX-License-Identifier: Apache-2.0
"""Bodies of forms: URL-encoded fields as texts, and the numbers in them."""

from collections.abc import Mapping
from math import isfinite
from urllib.parse import parse_qsl

from fastapi import Request

from reticent_server.errors import InvalidPrivacy, InvalidRequest

MAX_FIELDS = 32
MAX_LONG_FIELDS = 7000
"""Thirteen fields of each of 500 columns, the most that a schema declares."""

_TYPE = "application/x-www-form-urlencoded"


async def read_form(request: Request) -> Mapping[str, str]:
    """The fields of a form, each once and stripped of blanks. Raises InvalidRequest."""
    return await _read(request, MAX_FIELDS)


async def read_long_form(request: Request) -> Mapping[str, str]:
    """As `read_form`, with fields for every column of a table."""
    return await _read(request, MAX_LONG_FIELDS)


async def _read(request: Request, most: int) -> Mapping[str, str]:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _TYPE:
        raise InvalidRequest("A form is sent as application/x-www-form-urlencoded.")
    try:
        body = (await request.body()).decode("ascii")
        pairs = parse_qsl(
            body,
            keep_blank_values=True,
            strict_parsing=bool(body),
            errors="strict",
            max_num_fields=most,
        )
    except ValueError:
        raise InvalidRequest("The form cannot be read.") from None
    fields = {name: value.strip() for name, value in pairs}
    if len(fields) != len(pairs):
        raise InvalidRequest("The form holds a field twice.")
    return fields


def amount(fields: Mapping[str, str], name: str, label: str) -> float:
    """A field as a finite number that is not negative; empty is 0. Raises InvalidPrivacy."""
    text = fields.get(name, "")
    try:
        value = float(text or "0")
    except ValueError:
        value = float("nan")
    if not (isfinite(value) and value >= 0 and text.isascii()):
        raise InvalidPrivacy(f"{label} is a number such as 0.5 or 1e-6.")
    return value


def whole(text: str | None) -> int | None:
    """A whole number of at most 18 digits in a link of ours; None for anything else."""
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 19 else None
