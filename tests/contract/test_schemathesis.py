"""schemathesis over the whole OpenAPI document of a real server, with and without a key.

No 5xx, no status that is not documented, replies of the documented shape, no route that answers
without the key that it asks for. (Whether data that the document refuses are refused is tested by
test_api_bad_input: the hooks here turn most requests to a data set that there is.)
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import support_schemathesis
from support_installation import Installation, serving

CHECKS = ("--checks", "all", "--exclude-checks", "negative_data_rejection,positive_data_acceptance")


def run(installation: Installation, *options: str) -> None:
    hooks = Path(support_schemathesis.__file__)
    environment = os.environ | {
        "SCHEMATHESIS_HOOKS": hooks.stem,
        "PYTHONPATH": str(hooks.parent),
        "PYTHONWARNINGS": "ignore",
    }
    with serving(installation) as server:
        done = subprocess.run(
            [
                *(
                    sys.executable,
                    "-c",
                    "from schemathesis.cli import schemathesis; schemathesis()",
                    "run",
                ),
                *(f"{server.url}/openapi.json", "--no-color", "--seed", "7"),
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
    assert "unexpected_error" not in (installation.directory / "serve.log").read_text()


def keyed(installation: Installation) -> tuple[str, str]:
    return "--header", f"Authorization: Bearer {installation.keys['ana']}"


def test_a_few_requests_of_every_kind(installation: Installation) -> None:
    run(installation, "--phases", "fuzzing", "--max-examples", "12", *keyed(installation))


@pytest.mark.audit
@pytest.mark.parametrize("with_key", [True, False])
def test_every_phase(installation: Installation, with_key: bool) -> None:
    key = keyed(installation) if with_key else ()
    run(installation, "--continue-on-failure", "--max-examples", "300", *key)
