# SPDX-License-Identifier: Apache-2.0
"""Where an analyst's key comes from."""

import os
from pathlib import Path

from reticent._errors import Unauthorized

KEY_VARIABLE, FILE_VARIABLE = "RETICENT_KEY", "RETICENT_KEY_FILE"


def find_key(key: str | None) -> str:
    """The key that was given, else that of RETICENT_KEY, else of the file that RETICENT_KEY_FILE
    names.

    Raises Unauthorized, which never shows a key.
    """
    if key is not None:
        return _checked(key)
    if os.environ.get(KEY_VARIABLE):
        return _checked(os.environ[KEY_VARIABLE])
    if os.environ.get(FILE_VARIABLE):
        return _checked(_read(Path(os.environ[FILE_VARIABLE])))
    raise Unauthorized(
        f"Give reticent.Client a key, or set {KEY_VARIABLE} to it, or {FILE_VARIABLE} to a file "
        "that holds it."
    )


def _read(file: Path) -> str:
    try:
        return file.expanduser().read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text"
        raise Unauthorized(f"The key's file {file} cannot be read: {reason}.") from None


def _checked(key: str) -> str:
    # Checked here, since httpx would quote an unusable header, and with it the key, in its error.
    key = key.strip()
    if not (key.isascii() and key.isprintable() and key):
        raise Unauthorized("A key is a line of printable ASCII characters.")
    return key
