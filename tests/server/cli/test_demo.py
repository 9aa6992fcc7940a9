"""The demonstration, from nothing to its end, with its real server and client."""

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

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


def test_the_demonstration(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    elsewhere = {"RETICENT_DATABASE_URL": f"sqlite:///{tmp_path / 'not-this.db'}"}
    done = subprocess.run(
        [sys.executable, "-m", "reticent_server.cli", "demo", "--keep", str(kept)],
        env=os.environ | elsewhere,
        capture_output=True,
        text=True,
        timeout=120,
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
        httpx.get(url)
