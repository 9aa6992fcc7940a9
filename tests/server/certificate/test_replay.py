# SPDX-License-Identifier: Apache-2.0
"""The replay of the search, on kinds that take no time, and on a mechanism that is broken."""

from pathlib import Path

import pytest

from reticent_server.certificate.installation import source_digest
from reticent_server.certificate.replay import KindReplay, kinds_of, replayed
from reticent_server.errors import CuratorError
from reticent_server.kinds import KINDS
from reticent_server.mechanisms import noisy_sum

SMALL = 12


def replay(*names: str) -> list[KindReplay]:
    return list(replayed(kinds_of(names), size=SMALL))


def test_a_kind_loses_what_it_is_charged_and_no_more() -> None:
    (found,) = replay("crosstab")
    assert found.holds
    assert found.attained == pytest.approx(1, abs=1e-3)
    assert found.plans == found.steps == 18
    assert found.pairs == SMALL * (SMALL - 1) // 2
    assert found.drawn == found.refused == 0
    assert "Gaussian" in found.mechanism


def test_noise_for_less_than_a_unit_can_do_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = noisy_sum.sensitivity
    monkeypatch.setattr(noisy_sum, "sensitivity", lambda part: 0.95 * real(part))
    (found,) = replay("count")
    assert not found.holds
    assert found.attained == pytest.approx(0.95**-2, rel=1e-3)


def test_what_is_drawn_otherwise_is_counted() -> None:
    (found,) = replay("m_estimate")
    assert found.steps == 0
    assert found.drawn == found.plans > 0
    assert found.holds


def test_examples_that_are_not_for_a_unit_are_counted() -> None:
    (found,) = replay("anova")
    assert found.plans == 6
    assert found.refused == 12  # of both units that are persons


def test_all_kinds_for_analysts_are_replayed_unless_some_are_named() -> None:
    assert [kind.name for kind in kinds_of(None)] == [k.name for k in KINDS if k.for_analysts]
    with pytest.raises(CuratorError, match="No kind is called profile; there are count, "):
        kinds_of(["profile"])


def test_the_digest_of_the_source_is_of_names_and_contents(tmp_path: Path) -> None:
    seen = set()
    for name, text in (("a.py", "x"), ("a.py", "y"), ("b.py", "x"), ("b.txt", "x")):
        folder = tmp_path / f"{name}{text}"
        folder.mkdir()
        (folder / name).write_text(text)
        seen.add(source_digest(folder))
    assert len(seen) == 4
