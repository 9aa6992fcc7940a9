# SPDX-License-Identifier: Apache-2.0
"""What newcomers read and what their machines run: guides, citation, hooks and continuous
integration.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import reticent
from support.documents.code_blocks import ROOT

GUIDES = ("CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "docs/reference/stability.md")
FOLDERS = ("client/", "server/", "tests/", "tools/", "docs/", "migrations", "benchmarks")
MADE = {"docs/changelog.md", "docs/reference/http.md", "docs/reference/command-line.md"} | {
    "docs/reference/settings.md"
}
"""Pages that the documentation's build makes."""


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def load(name: str) -> dict[Any, Any]:
    found: dict[Any, Any] = yaml.safe_load(read(name))
    return found


def project(folder: str = "client") -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(read(f"{folder}/pyproject.toml"))["project"]
    return found


@pytest.mark.parametrize("name", GUIDES)
def test_what_a_guide_names_is_there(name: str) -> None:
    text = read(name)
    named = {word for word in re.findall(r"`([^`\s]+)`", text) if word.startswith(FOLDERS)}
    linked = re.findall(r"\]\((?!https?://)([^)#]+)", text)
    places = [ROOT / word for word in named]
    places += [(ROOT / name).parent / link for link in linked]
    missing = {str(place.resolve().relative_to(ROOT)) for place in places if not place.exists()}
    assert places
    assert missing <= MADE


@pytest.mark.parametrize("name", GUIDES)
def test_the_targets_that_a_guide_names_are_in_the_makefile(name: str) -> None:
    phony = re.search(r"^\.PHONY: (.+)$", read("Makefile"), re.MULTILINE)
    assert phony is not None
    commands = re.findall(r"`make ([a-z ]+)`", read(name))
    assert {target for command in commands for target in command.split()} <= set(phony[1].split())


def test_the_worked_examples_are_in_the_code() -> None:
    """Each name that the guide gives in brackets stands in the file that it gives before them."""
    pairs = re.findall(r"`([\w./]+\.py)`[^`()]*\(`(\w+)`", read("CONTRIBUTING.md"))
    assert len(pairs) >= 5
    for path, name in pairs:
        assert re.search(rf"\b{name}\b", read(path)), (path, name)


def test_the_citation_is_of_this_version() -> None:
    cited = load("CITATION.cff")
    assert {"cff-version", "message", "title", "authors", "type"} <= set(cited)
    assert (cited["version"], cited["license"]) == (project()["version"], project()["license"])
    assert cited["version"] == reticent.__version__


def test_fixes_are_promised_for_this_version() -> None:
    minor = ".".join(project()["version"].split(".")[:2])
    assert f"| {minor} | yes |" in read("SECURITY.md")


def test_the_hooks_run_what_make_check_runs() -> None:
    (repository,) = load(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    entries = [hook["entry"] for hook in repository["hooks"]]
    check = read("Makefile").split("\ncheck:")[1].split("\n\n")[0]
    tools = set(re.findall(r"\$\(BIN\)/([\w-]+)", check))
    assert {Path(entry.split()[0]).name for entry in entries} == tools
    assert all(entry.startswith(".venv/bin/") for entry in entries)
    assert all(hook["language"] == "system" for hook in repository["hooks"])


def test_every_supported_python_is_tested() -> None:
    job = load(".github/workflows/ci.yml")["jobs"]["check-and-test"]
    versions = job["strategy"]["matrix"]["python"]
    assert versions == ["3.11", "3.12", "3.13"]
    assert project()["requires-python"] == f">={versions[0]}"
    assert "Python 3.11, 3.12 and 3.13 are tested" in read("docs/reference/stability.md")
    assert [step["run"] for step in job["steps"] if "run" in step][-1] == ".ci/run"
    assert (ROOT / ".ci/run").stat().st_mode & 0o111
