"""schemathesis over the whole OpenAPI document of a real server, with and without a key.

No 5xx, no status that is not documented, replies of the documented shape, no route that answers
without the key that it asks for. (Whether data that the document refuses are refused is tested by
test_api_bad_input: the hooks here turn most requests to a data set that there is.)
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import support_schemathesis
from support_installation import Installation, opened, serving

CHECKS = ("--checks", "all", "--exclude-checks", "negative_data_rejection,positive_data_acceptance")


CALLS = int(os.environ.get("AUDIT_CALLS", "100000"))
"""In all, of the long fuzzing: a third for each role."""


def run(installation: Installation, *options: str, seed: int = 7) -> None:
    """One run of schemathesis over a server, for which nothing may fail."""
    hooks = Path(support_schemathesis.__file__)
    environment = os.environ | {
        "SCHEMATHESIS_HOOKS": hooks.stem,
        "PYTHONPATH": str(hooks.parent),
        "PYTHONWARNINGS": "ignore",
    }
    with serving(installation, cancels_per_minute=10**9) as server:
        done = subprocess.run(
            [
                *(
                    sys.executable,
                    "-c",
                    "from schemathesis.cli import schemathesis; schemathesis()",
                    "run",
                ),
                *(f"{server.url}/openapi.json", "--no-color", "--seed", str(seed)),
                *CHECKS,
                *options,
            ],
            cwd=installation.directory,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert not {status for status in statuses(installation) if status >= 500}


def statuses(installation: Installation) -> Counter[int]:
    """How often the servers of an installation have replied with which status, by their log."""
    text = (installation.directory / "serve.log").read_text()
    assert "unexpected_error" not in text
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return Counter(line["status"] for line in lines if line["event"] == "request")


def key_of(installation: Installation, role: str) -> str | None:
    """An analyst's key, a curator's, or none."""
    if role == "analyst":
        return installation.keys["ana"]
    if role == "curator":
        with opened(installation.settings) as services:
            return services.access.add_curator("carol", by="t")
    return None


def header(key: str | None) -> tuple[str, ...]:
    return () if key is None else ("--header", f"Authorization: Bearer {key}")


def test_a_few_requests_of_every_kind(installation: Installation) -> None:
    key = header(installation.keys["ana"])
    run(installation, "--phases", "fuzzing", "--max-examples", "12", *key)


@pytest.mark.audit
@pytest.mark.parametrize("with_key", [True, False])
def test_every_phase(installation: Installation, with_key: bool) -> None:
    key = header(installation.keys["ana"] if with_key else None)
    run(installation, "--continue-on-failure", "--max-examples", "300", *key)


@pytest.mark.audit
@pytest.mark.parametrize("role", ["analyst", "curator", "nobody"])
def test_a_hundred_thousand_calls(installation: Installation, role: str) -> None:
    """Of every role, none of which is replied to with 5xx; afterwards the ledger is in order."""
    key, seed = header(key_of(installation, role)), 0
    options = ("--phases", "fuzzing", "--continue-on-failure", "--max-examples", "1000", *key)
    while seed == 0 or statuses(installation).total() < CALLS / 3:
        run(installation, *options, seed=seed)
        seed += 1
    print(role, dict(statuses(installation)), f"{seed} runs")
    with opened(installation.settings) as services:
        assert services.ledger.verify() == []
