# SPDX-License-Identifier: Apache-2.0
"""Which tests are run, and in which order.

One in k of the cases of a test marked sample(k) runs in `make test`, the others in `make audit`; of
what is left, one in SLOW of the slow tests of a file, and no file goes without a test.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import ceil
from random import Random
from zlib import crc32

import pytest

SLOW = 8
"""They took a quarter of the suite's time. An eighth of those of each file, rounded, is kept in
`make test`, and one at least where the file has no other test: most of them attack, or simulate,
one mechanism or model in several ways, which the quick ones of the file look at by itself.
"""

COLLECTED = pytest.StashKey[dict[str, bool]]()
"""Every test that was collected, whichever are run, and whether `make test` runs it or another of
its cases.
"""


def sample(items: Sequence[pytest.Item], *, one_case: bool) -> None:
    """Marks what is left to the audit; with one_case, of every test all cases but one. The order of
    a checksum of their names says which they are, so that they are spread over all parameters, and
    the same in every run.
    """
    for cases in _parted(items, "[", "" if one_case else "sample"):
        mark = cases[0].get_closest_marker("sample")
        _leave(cases, 1 if one_case or mark is None else ceil(len(cases) / mark.args[0]))
    quick = {file_of(item) for item in items if not _is(item, "audit") and not _is(item, "slow")}
    for tests in _parted(items, "::", "slow"):
        _leave(tests, max(round(len(tests) / SLOW), file_of(tests[0]) not in quick))


def file_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _is(item: pytest.Item, mark: str) -> bool:
    return item.get_closest_marker(mark) is not None


def _parted(items: Iterable[pytest.Item], end: str, mark: str) -> Iterable[list[pytest.Item]]:
    """Those of the suite that have a mark, by what of their names stands before `end`."""
    found: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if (not mark or _is(item, mark)) and not _is(item, "audit"):
            found[item.nodeid.partition(end)[0]].append(item)
    return found.values()


def _leave(items: list[pytest.Item], kept: int) -> None:
    items.sort(key=lambda item: crc32(item.nodeid.encode()))
    for item in items[kept:]:
        item.add_marker(pytest.mark.audit)
        item.add_marker(pytest.mark.rest)


def shuffled(items: Iterable[pytest.Item], seed: int) -> list[pytest.Item]:
    """Files in another order, and the tests of each: no test may need one that came before it. What
    the tests of a file share is still made once.
    """
    random = Random(seed)
    files: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        files[file_of(item)].append(item)
    every = list(files.values())
    random.shuffle(every)
    for found in every:
        random.shuffle(found)
    return [item for found in every for item in found]
