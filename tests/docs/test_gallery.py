# SPDX-License-Identifier: Apache-2.0
"""The gallery has a plot of every kind, made of the call that it prints."""

import sys
from types import ModuleType

import pytest

from support.documents.code_blocks import ROOT

MOST_BYTES = 60_000  # of a picture: a page of thirty then loads in a second or two


@pytest.fixture(scope="module")
def gallery() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])
        import gallery

    return gallery


def test_the_page_is_what_the_kinds_make_it(gallery: ModuleType) -> None:
    assert gallery.PAGE.read_text("utf-8") == gallery.page(), "run `python tools/gallery.py`"


def test_every_kind_has_a_small_picture_and_no_other_is_kept(gallery: ModuleType) -> None:
    kinds = {example.kind for example in gallery.examples()}
    pictures = {path.stem: path for path in gallery.PICTURES.iterdir()}
    assert set(pictures) == kinds, "run `python tools/gallery.py` with the kinds that are missing"
    for path in pictures.values():
        data = path.read_bytes()
        assert data.startswith(b"\x89PNG"), path.name
        assert len(data) < MOST_BYTES, path.name
