# SPDX-License-Identifier: Apache-2.0
"""At seeded noise a reply is the same to the byte whenever it is asked for, and a difference is
named.
"""

import json
from pathlib import Path

import pytest

from support.kinds import same_replies

WANTED = ": linear_regression 4"


@pytest.mark.slow
def test_the_same_tree_replies_the_same_and_a_difference_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "replies.json"
    assert same_replies.main([str(file)], WANTED) == 0
    assert same_replies.main([str(file), "--compare"], WANTED) == 0
    stored = json.loads(file.read_text("utf-8"))
    statuses = {reply.get("status", "refused") for reply in stored.values()}
    assert statuses >= {"reply", "refused"}
    assert "failed" not in statuses
    name = "profile: linear_regression 4"
    stored[name]["result"]["coefficients"][0] += 1e-15
    file.write_text(json.dumps(stored), "utf-8")
    assert same_replies.main([str(file), "--compare"], WANTED) == 1
    assert capsys.readouterr().out.splitlines()[-1] == name
