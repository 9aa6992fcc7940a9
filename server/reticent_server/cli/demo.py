# SPDX-License-Identifier: Apache-2.0
"""`reticent demo`: a whole session on real data, with the real commands, server and client."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import (
    ExitStack,
    chdir,
    contextmanager,
    nullcontext,
    redirect_stderr,
    redirect_stdout,
)
from io import StringIO
from pathlib import Path
from shlex import join, split
from textwrap import fill
from types import FrameType
from typing import Annotated

import typer

import reticent
from reticent_server.app import build_services
from reticent_server.cli import root
from reticent_server.cli.common import command, out, print_json
from reticent_server.cli.demo_data import write_table
from reticent_server.cli.demo_target import curator_fit
from reticent_server.cli.temporary import temporary_folder
from reticent_server.domain.query import Privacy
from reticent_server.errors import CuratorError
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.kinds.shared.target import Target
from reticent_server.pipeline import planning
from reticent_server.settings import Settings

MODEL = "log1p(mdvis) ~ lncoins + idp + disea + health"
EPSILON = 1.0
STOP_SECONDS = 10
WIDTH = 100
PIPED_WIDTH = 110


@command(None)
def demo(
    keep: Annotated[
        Path | None, typer.Option(help="Work in this new directory and keep it.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print nothing but the release and the noise-free fit.")
    ] = False,
) -> None:
    """Load real medical data, set budgets, serve, fit a private regression, and stop."""
    if not out.is_terminal:
        out.width = PIPED_WIDTH
    signal.signal(signal.SIGTERM, _end)
    with redirect_stdout(StringIO()) if as_json else nullcontext():
        fit, target = _session(keep)
    if as_json:
        print_json({"release": fit.release, "noise_free": _document(target)})


def _session(keep: Path | None) -> tuple[reticent.RegressionResults, Target]:
    """All of it; the released fit, and the noise-free one."""
    with _workplace(keep) as place, chdir(place), _clean_environment():
        key = _curator()
        try:
            with _server() as url, reticent.Client(url, key=key) as client:
                fit = _analyst(client, url)
                target = _beside(fit)
                _exhausted(client)
        except reticent.ReticentError as error:
            raise CuratorError(f"The demonstration's analyst met an error: {error}") from None
        _ledger()
    end = f"In {keep}, `reticent serve` goes on." if keep else "Its temporary directory is gone."
    _say(f"\nThe server has ended. {end}")
    return fit, target


def _document(target: Target) -> dict[str, list[float]]:
    return {
        "coefficients": target.coefficients.tolist(),
        "standard_errors": target.standard_errors.tolist(),
    }


def _curator() -> str:
    """Everything that a curator does before serving; the analyst's key."""
    _title("1. The curator loads a private table and decides what may be learnt about it")
    _say(
        "The RAND Health Insurance Experiment: 20,190 person-years. Its file names no persons, "
        "so the\n"
        "protected unit is the row: one person-year, not everything about a person.\n"
    )
    write_table(Path("randhie.csv"), Path("randhie.yaml"))
    _run("init")
    _run("dataset load randhie randhie.csv --schema randhie.yaml")
    _say("\nThe cap over all analysts together, and the profile, which is charged to it:\n")
    _run("budget set --dataset randhie --epsilon 4 --delta 1e-4")
    _run("dataset profile randhie --epsilon 1")
    _say("\nOne analyst, with a budget of her own:\n")
    key = _run("analyst add ana", quiet=True).strip()
    _say(f"{key[:12]}…  (shown once; stored as a hash)")
    _run("budget set --dataset randhie --analyst ana --epsilon 1.5 --delta 1e-5 --rule basic")
    return key


def _analyst(client: reticent.Client, url: str) -> reticent.RegressionResults:
    """Plans and fits; the analyst sees no row and needs nothing but the key."""
    _title("2. The analyst asks over HTTP")
    _say(f'>>> ds = reticent.Client("{url}", key=…).dataset("randhie")')
    dataset = client.dataset("randhie")
    _say(f'>>> model = "{MODEL}"')
    _say(">>> ds.plan(ds.linear_regression, model, epsilon=1.0)      # free, reads no row\n")
    plan = dataset.plan("linear_regression", MODEL, epsilon=EPSILON)
    _say(f"Cost: {plan.cost}. Expected standard errors and more: print(plan).")
    _say(fill(plan.guarantee.statement, WIDTH) + "\n")
    _say(
        ">>> fit = ds.linear_regression(model, epsilon=1.0)         # charged\n>>> fit.summary()\n"
    )
    fit = dataset.linear_regression(MODEL, epsilon=EPSILON)
    _say(str(fit.summary()))
    if not isinstance(fit, reticent.RegressionResults):
        raise CuratorError("The demonstration's fit has no reply.")
    return fit


def _beside(fit: reticent.RegressionResults) -> Target:
    """The private estimates beside the noise-free ones, which it gives."""
    _title("3. Beside what only the curator could see")
    facts = build_services(Settings()).catalog.facts("randhie")
    target = curator_fit(
        planning.plan(facts, LinearRegression(MODEL), Privacy(EPSILON)), Path("randhie.csv")
    )
    _say(
        "Left: released, for everyone to read. Right, between bars: the robust fit of the same "
        "equation\n"
        "WITHOUT noise. It is not private and no analyst gets it; it is here to judge the left "
        "side by.\n"
    )
    rows = [_COMPARED, *(_compared(fit, target, i) for i in range(len(fit.names)))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *cells in rows:
        right = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        _say("  ".join([name.ljust(widths[0]), *right]))
    return target


_COMPARED = ("", "estimate", "sampling SE", "privacy SE", "| noise-free", "SE", "difference/SE |")


def _compared(fit: reticent.RegressionResults, target: Target, i: int) -> tuple[str, ...]:
    """One line of the comparison; the difference is in released standard errors."""
    exact, error = float(target.coefficients[i]), float(target.standard_errors[i])
    released = (float(v[i]) for v in (fit.params, fit.sampling_bse, fit.privacy_bse))
    apart = (float(fit.params[i]) - exact) / float(fit.bse[i])
    numbers = (f"{value:.4f}" for value in released)
    return (fit.names[i], *numbers, f"| {exact:.4f}", f"{error:.4f}", f"{apart:+.1f} |")


def _exhausted(client: reticent.Client) -> None:
    """A second fit, which the budget does not cover."""
    _title("4. When the budget runs out")
    dataset = client.dataset("randhie")
    _say(">>> client.budget()\n")
    _say(str(client.budget()))
    _say("\n>>> ds.linear_regression(model, epsilon=1.0)\n")
    try:
        dataset.linear_regression(MODEL, epsilon=EPSILON)
    except reticent.BudgetExhausted as refusal:
        _say(fill(f"BudgetExhausted: {refusal}", WIDTH))
    else:
        raise CuratorError("A budget of 1.5 has covered twice 1.0.")
    _say("\nNothing was charged, and what was answered can be read again for free:\n")
    _say(f">>> client.releases()\n\n{[release.id for release in client.releases()]}")


def _ledger() -> None:
    _title("5. The curator looks at the ledger")
    _say(
        "Entries are chained by hashes. `settle` has no time: when a computation ended could\n"
        "depend on the data.\n"
    )
    _run("ledger show")
    _run("ledger verify")
    _run("budget show")


@contextmanager
def _workplace(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with temporary_folder("reticent-demo-") as name:
            yield Path(name)
        return
    try:
        keep.mkdir(parents=True)
    except OSError as error:
        raise CuratorError(f"{keep} cannot be made: {error.strerror}.") from None
    yield keep


@contextmanager
def _clean_environment() -> Iterator[None]:
    """Hides RETICENT_* variables: the demonstration must not touch another installation."""
    hidden = {name: os.environ.pop(name) for name in [*os.environ] if name.startswith("RETICENT_")}
    try:
        yield
    finally:
        os.environ.update(hidden)


@contextmanager
def _server() -> Iterator[str]:
    """`reticent serve` in a process of its own, which is always ended; its address."""
    command = [sys.executable, "-m", "reticent_server.cli", "serve", "--port", "0"]
    _say("\n$ reticent serve --port 0")
    with Path("serve.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)  # noqa: S603
    try:
        line = process.stdout.readline() if process.stdout else ""
        if "http" not in line:
            raise CuratorError(f"The server did not start: {Path('serve.log').read_text()[-500:]}")
        _say(line.strip())
        yield next(word for word in line.split() if word.startswith("http"))
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()


def _run(command: str, *, quiet: bool = False) -> str:
    """Runs one of the curator's commands as it would be typed; what it printed, if quiet."""
    arguments = split(command)
    _say(f"$ reticent {join(arguments)}")
    sys.stdout.flush()
    printed = StringIO()
    with ExitStack() as redirected:
        if quiet:
            redirected.enter_context(redirect_stdout(printed))
            redirected.enter_context(redirect_stderr(StringIO()))
        status = root(arguments)(args=arguments, standalone_mode=False)
    if status:
        raise CuratorError(f"`reticent {command}` has failed.")
    return printed.getvalue()


def _end(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(143)  # so that the server is ended, too


def _title(text: str) -> None:
    out.print(f"\n{text}\n{'─' * len(text)}", style="bold", markup=False)


def _say(text: str) -> None:
    out.print(text, markup=False)
