# SPDX-License-Identifier: Apache-2.0
"""Which tests are run, and in which order.

One in k of the cases of a test marked sample(k) runs in `make test`, the others in `make audit`.
"""

from collections import defaultdict
from collections.abc import Iterable
from math import ceil
from random import Random
from zlib import crc32

import pytest

COLLECTED = pytest.StashKey[dict[str, bool]]()
"""Every test that was collected, whichever are run, and whether `make test` runs it or another of its cases."""


def sample(items: Iterable[pytest.Item], *, one_case: bool) -> None:
    """Marks the cases that are left to the audit; with one_case, of every test all cases but one. The order of a checksum of their names says which they are, so that
    they are spread over all parameters, and the same in every run."""
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        sampled = one_case or item.get_closest_marker("sample")
        if sampled and not item.get_closest_marker("audit"):
            cases[item.nodeid.partition("[")[0]].append(item)
    for found in cases.values():
        mark = found[0].get_closest_marker("sample")
        kept = 1 if one_case or mark is None else ceil(len(found) / mark.args[0])
        found.sort(key=lambda item: crc32(item.nodeid.encode()))
        for item in found[kept:]:
            item.add_marker(pytest.mark.audit)
            item.add_marker(pytest.mark.rest)


def shuffled(items: Iterable[pytest.Item], seed: int) -> list[pytest.Item]:
    """Files in another order, and the tests of each: no test may need one that came before it. What the tests of a file
    share is still made once."""
    random = Random(seed)
    files: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        files[item.nodeid.partition("::")[0]].append(item)
    every = list(files.values())
    random.shuffle(every)
    for found in every:
        random.shuffle(found)
    return [item for found in every for item in found]
