# SPDX-License-Identifier: Apache-2.0
"""Which tests `make test` runs: some cases of those marked sample(k), an eighth of the slow ones of
a file, and of each file one; the audit has the rest.
"""

from __future__ import annotations

import pytest

from support.sampling import sample

FILE = "tests/a.py"


class MarkedTest:
    """What sampling asks of a collected test."""

    def __init__(self, name: str, *marks: pytest.MarkDecorator) -> None:
        self.nodeid = f"{FILE}::{name}"
        self._marks = {mark.name: mark.mark for mark in marks}

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self._marks.get(name)

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self._marks[mark.name] = mark.mark

    @property
    def is_rest(self) -> bool:
        return {"audit", "rest"} <= self._marks.keys()


def left(items: list[MarkedTest], *, one_case: bool = False) -> int:
    sample(items, one_case=one_case)  # type: ignore[arg-type]
    return sum(item.is_rest for item in items)


def test_of_the_cases_of_a_test_one_in_k_is_kept() -> None:
    cases = [MarkedTest(f"test_x[{i}]", pytest.mark.sample(4)) for i in range(10)]
    others = [MarkedTest(f"test_y[{i}]") for i in range(10)]
    assert left(cases + others) == 7
    assert not any(item.is_rest for item in others)


@pytest.mark.parametrize(("slow", "kept"), [(1, 0), (2, 0), (4, 0), (5, 1), (11, 1), (12, 2)])
def test_of_the_slow_tests_of_a_file_an_eighth_is_kept(slow: int, kept: int) -> None:
    several = [MarkedTest(f"test_{i}", pytest.mark.slow) for i in range(slow)]
    assert left([*several, MarkedTest("test_quick")]) == slow - kept


def test_no_file_goes_without_a_test() -> None:
    assert left([MarkedTest("test_alone", pytest.mark.slow)]) == 0
    assert left([MarkedTest(f"test_{i}", pytest.mark.slow) for i in range(2)]) == 1


def test_what_the_audit_has_is_no_case_that_is_kept() -> None:
    own = MarkedTest("test_own", pytest.mark.audit, pytest.mark.slow)
    assert left([own, MarkedTest("test_kept", pytest.mark.slow)]) == 0
    assert not own.is_rest


def test_for_the_inner_loop_one_case_of_each_is_kept() -> None:
    assert left([MarkedTest(f"test_x[{i}]") for i in range(9)], one_case=True) == 8
