# SPDX-License-Identifier: Apache-2.0
"""The demonstration, from nothing to its end, with its real server and client."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import numpy as np
import pytest

from reticent import RegressionResults
from reticent_server.cli import demo
from reticent_server.cli.demo_target import Target

PARTS = [
    "$ reticent init",
    "$ reticent dataset load randhie",
    "$ reticent dataset profile randhie --epsilon 1",
    "$ reticent serve",
    "Linear regression on randhie",
    "difference/SE |",
    "BudgetExhausted: ",
    "$ reticent ledger show",
    "The ledger is as its entries say.",
    "The server has ended.",
]


@pytest.mark.audit
def test_the_demonstration(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    elsewhere = {"RETICENT_DATABASE_URL": f"sqlite:///{tmp_path / 'not-this.db'}"}
    done = subprocess.run(
        [sys.executable, "-m", "reticent_server.cli", "demo", "--keep", str(kept)],
        env=os.environ | elsewhere,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert (done.returncode, done.stderr.strip()) == (0, ""), done.stdout[-2000:]
    places = [done.stdout.find(part) for part in PARTS]
    assert -1 not in places, PARTS[places.index(-1)]
    assert places == sorted(places)
    # Private and noise-free agree to within what the private standard errors say.
    apart = [float(x) for x in re.findall(r"([+-]\d+\.\d) \|$", done.stdout, flags=re.MULTILINE)]
    assert len(apart) == 6
    assert max(map(abs, apart)) < 6
    # Its own installation only; its server is gone.
    assert not (tmp_path / "not-this.db").exists()
    assert (kept / "reticent.db").exists()
    (url,) = re.findall(r"Reticent serves at (\S+)", done.stdout)
    with pytest.raises(httpx.ConnectError):
        httpx.get(url, timeout=60)


def test_as_json_it_prints_nothing_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def session(_keep: Path | None) -> tuple[RegressionResults, Target]:
        demo.out.print("much that is for people")
        return RegressionResults({"id": "rel_1"}), Target(
            np.array([1.5]), np.array([0.5]), 1.0, np.ones(1)
        )

    monkeypatch.setattr(demo, "_session", session)
    monkeypatch.setattr(demo.signal, "signal", lambda *_: None)
    monkeypatch.setattr(demo.out, "_width", None)
    demo.demo(as_json=True)
    noise_free = {"coefficients": [1.5], "standard_errors": [0.5]}
    assert json.loads(capsys.readouterr().out) == {
        "release": {"id": "rel_1"},
        "noise_free": noise_free,
    }
    demo.demo()
    assert "for people" in capsys.readouterr().out
