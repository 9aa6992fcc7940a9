# SPDX-License-Identifier: Apache-2.0
"""Adding a kind is adding its room and a line in the list: nothing else has to be touched."""

import json
import os
import subprocess
import sys

import pytest

from support.documents.code_blocks import ROOT
from support.installations.small import Installation

IMPORTED = "kinds." + "demonstration"
FOLDER = ROOT / "tests/kinds/demonstration"


@pytest.mark.audit
def test_a_new_kind_is_served_described_and_asked(installation: Installation) -> None:
    path = [str(ROOT / part) for part in ("server", "client", "tests", "tools")]
    run = subprocess.run(
        [
            sys.executable,
            str(FOLDER / "session.py"),
            str(installation.directory),
            json.dumps(installation.keys),
        ],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    learned = json.loads(run.stdout.splitlines()[-1])
    assert learned.pop("refused") == "invalid_query"
    result = learned.pop("result")
    assert set(result) == {"share", "standard_error", "n"}
    assert 0.2 < result["share"] < 0.8  # ten standard errors of noise around one half
    assert set(learned.values()) == {True}, learned


def test_no_other_file_knows_the_demonstration() -> None:
    named = [
        path.relative_to(ROOT)
        for folder in ("server", "client", "tests", "docs", "tools", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
        if IMPORTED in path.read_text("utf-8") and FOLDER not in path.parents
    ]
    assert named == []
