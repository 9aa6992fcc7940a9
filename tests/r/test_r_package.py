# SPDX-License-Identifier: Apache-2.0
"""The R package: its generated files are fresh, and R's own check passes against a server that is
started here.
"""

from pathlib import Path

import pytest

from support.documents.session import session
from support.processes import r_language
from support.tables.houses import write_houses

ROOT = Path(__file__).resolve().parents[2]
BY_HAND = {
    "brier_score", "cohens_kappa", "dataset", "density_test", "fuzzy_effect", "group_differences",
    "honest_did", "meta", "plan", "pooled", "predict_survival", "private_lm", "release",
    "reticent_client", "study_corr", "study_group", "study_icc", "study_iv", "study_lasso",
    "study_mediation", "study_mixedlm", "study_ols", "study_pca", "study_reliability",
    "study_robustness", "study_select", "study_sem", "study_twin", "table_one",
}  # fmt: skip
CURATOR = """\
reticent init
reticent dataset load houses houses.csv --schema houses.yaml
reticent budget set --dataset houses --epsilon 100 --delta 1e-4
reticent analyst add ada
reticent budget set --dataset houses --analyst ada --epsilon 50 --delta 1e-5
reticent serve
"""


def test_the_generated_files_are_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import r_methods

    files = r_methods.files()
    for path, text in files.items():
        assert path.read_text("utf-8") == text, f"{path} is stale: run `make generated`"
    pages = {path.stem for path in files if path.suffix == ".Rd"}
    assert {path.stem for path in (ROOT / "r/man").glob("*.Rd")} == pages | BY_HAND


@pytest.mark.audit
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.audit)])
def test_the_package_passes_its_check(tmp_path: Path, whole: bool) -> None:
    """Without the vignette, whose making takes a third of the time, but in the audit."""
    r_language.need()
    write_houses(tmp_path / "houses.csv", tmp_path / "houses.yaml")
    with session(tmp_path) as started:
        started.shell(CURATOR)
        variables = {
            "RETICENT_KEY": started.key,
            "RETICENT_TEST_URL": started.url,
            "_R_CHECK_FORCE_SUGGESTS_": "false",  # broom is for the reader
        }
        build, check = ([], []) if whole else (["--no-build-vignettes"], ["--ignore-vignettes"])
        checked("build", *build, str(ROOT / "r"), folder=tmp_path, variables=variables)
        (archive,) = tmp_path.glob("reticent_*.tar.gz")
        checked("check", "--no-manual", *check, archive.name, folder=tmp_path, variables=variables)
    log = (tmp_path / "reticent.Rcheck/00check.log").read_text()
    assert "WARNING" not in log, log
    tested = (tmp_path / "reticent.Rcheck/tests/testthat.Rout").read_text()
    assert "FAIL 0" in tested
    assert "SKIP 0" in tested


def checked(*arguments: str, folder: Path, variables: dict[str, str]) -> None:
    status, printed = r_language.command(*arguments, folder=folder, variables=variables)
    assert status == 0, printed
