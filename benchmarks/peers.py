# SPDX-License-Identifier: Apache-2.0
"""One private regression through HTTP against peers in the same run, and many analysts at once.

n = 10⁶, p = 10, two threads, warm cache, time grid off, over a loopback socket. Peers: one reading
of the array (`X.sum()`), scikit-learn's HuberRegressor, statsmodels' RLM, and diffprivlib's
LinearRegression where BENCH_DIFFPRIVLIB names the Python of an environment that has it. A logistic
regression on the same terms, against statsmodels' Logit. Draws docs/images/speed.svg. Then the
analysts ask again with the default time grid, once the machine is measured: how many replies were
late. BENCH_SECONDS (30): how long 16 analysts ask at the same time. BENCH_PEER_ROWS (1e6): the
table's rows.
"""

import json
import os
import platform
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pyarrow.dataset as pads
import uvicorn

from benchmarks.figures import IMAGES
from benchmarks.scale import resident_mb, settle
from benchmarks.tables import names, write_table
from reticent_server.api.logs import configure_logging
from reticent_server.app import build_services, create_app
from reticent_server.cli.dataset_register import SourcePlace, register_dataset
from reticent_server.cli.init import prepare
from reticent_server.pipeline.calibration import measured
from reticent_server.pipeline.metrics import OVERRUNS
from reticent_server.pipeline.profile import release_profile
from reticent_server.settings import Settings

N = int(float(os.environ.get("BENCH_PEER_ROWS", "1e6")))
P, REPEATS = 10, 5
ANALYSTS = 16
SECONDS = float(os.environ.get("BENCH_SECONDS", "30"))
TERMS = " + ".join(names(P))
MODEL = {"kind": "linear_regression", "formula": f"y ~ {TERMS}"}
LOGISTIC = {"kind": "glm", "family": "binomial", "formula": f"positive ~ {TERMS}"}
BARS = (
    ("Reticent, robust regression, private, over HTTP", "http_seconds"),
    ("scikit-learn HuberRegressor", "sklearn_huber_seconds"),
    ("statsmodels RLM", "statsmodels_rlm_seconds"),
    ("diffprivlib LinearRegression, private", "diffprivlib_seconds"),
    ("Reticent, logistic regression, private, over HTTP", "http_logistic_seconds"),
    ("statsmodels Logit", "statsmodels_logit_seconds"),
    ("numpy, one sum of the array", "numpy_sum_seconds"),
)
_DIFFPRIVLIB = """
import sys, time, warnings, numpy as np
warnings.simplefilter("ignore")
from diffprivlib.models import LinearRegression
X, y = np.load(sys.argv[1]), np.load(sys.argv[2])
model = LinearRegression(epsilon=1.0, bounds_X=(-20, 20), bounds_y=(-20, 20))
start = time.perf_counter()
model.fit(X, y)
print(time.perf_counter() - start)
"""


def installation(folder):
    """A server's services on one registered table, and a key for each analyst."""
    write_table(folder / "rows", N, P, binary=True)
    columns = "\n".join(
        f"  {k}: {{kind: numeric, lower: -20, upper: 20}}" for k in [*names(P), "y"]
    )
    columns += "\n  positive: {kind: boolean}\n"
    (folder / "schema.yaml").write_text(f"columns:\n{columns}")
    settings = Settings(
        database_url=f"sqlite:///{folder / 'reticent.db'}",
        vault_url=f"sqlite:///{folder / 'vault.db'}",
        secrets_file=folder / "secrets.json",
        reply_grid_ms=0,
        threads=2,
        requests_per_minute=10**6,
    )
    prepare(settings)
    place = SourcePlace(parquet=folder / "rows")
    register_dataset(settings, "bench", place, folder / "schema.yaml")
    services = build_services(settings)
    budget = {"epsilon": 1e6, "delta": 0.009, "rule": "basic", "by": "bench"}
    services.ledger.set_population_cap("bench", **budget)
    release_profile(services, "bench", epsilon=1.0)
    keys = []
    for k in range(ANALYSTS):
        analyst, key = services.access.add_analyst(f"a{k}", by="t")
        services.ledger.set_analyst_budget(analyst, "bench", "bench", **budget)
        services.access.grant(analyst, "bench", by="t")
        keys.append(key)
    return services, keys


@contextmanager
def served(services):
    server = uvicorn.Server(
        uvicorn.Config(create_app(services), log_config=None, access_log=False, ws="none")
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def client(url, key):
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=300)


def ask(http, query=MODEL):
    start = time.perf_counter()
    body = {"dataset": "bench", "query": query, "privacy": {"epsilon": 1.0, "delta": 1e-9}}
    reply = http.post("/v1/releases", json=body)
    assert reply.json()["status"] == "reply", reply.text
    return time.perf_counter() - start


def many(url, keys):
    """Analysts who ask without a pause, while somebody looks at the list of data sets."""
    until = time.monotonic() + SECONDS
    fits, looks, failures, memory = [], [], [], [resident_mb()]

    def analyst(key) -> None:
        with client(url, key) as http:
            while time.monotonic() < until:
                try:
                    fits.append(ask(http))
                except Exception as error:  # noqa: BLE001 - counted
                    failures.append(type(error).__name__)

    threads = [threading.Thread(target=analyst, args=(key,)) for key in keys]
    for thread in threads:
        thread.start()
    with client(url, keys[0]) as http:
        while time.monotonic() < until:
            start = time.perf_counter()
            assert http.get("/v1/datasets").status_code == 200
            looks.append(time.perf_counter() - start)
            memory.append(resident_mb())
            time.sleep(0.2)
    for thread in threads:
        thread.join()
    return {
        "analysts_fits": len(fits),
        "analysts_failures": len(failures),
        "analysts_fit_median": statistics.median(fits),
        "analysts_fit_p95": float(np.quantile(fits, 0.95)),
        "analysts_get_median": statistics.median(looks),
        "analysts_get_p95": float(np.quantile(looks, 0.95)),
        "analysts_get_max": max(looks),
        "analysts_memory_mb_first_last": [memory[1], memory[-1]],
    }


def seconds(call, repeats):
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def peers(folder):
    import statsmodels.api as sm
    from sklearn.linear_model import HuberRegressor

    table = pads.dataset(folder / "rows").to_table()
    X = np.column_stack([table[k].to_numpy() for k in names(P)])
    y = table["y"].to_numpy()
    positive = table["positive"].to_numpy() * 1.0
    found = {
        "numpy_sum_seconds": seconds(X.sum, 20),
        "sklearn_huber_seconds": seconds(lambda: HuberRegressor(alpha=0.0).fit(X, y), 3),
        "statsmodels_rlm_seconds": seconds(lambda: sm.RLM(y, sm.add_constant(X)).fit(), 1),
        "statsmodels_logit_seconds": seconds(
            lambda: sm.Logit(positive, sm.add_constant(X)).fit(disp=0), 3
        ),
    }
    python = os.environ.get("BENCH_DIFFPRIVLIB")
    if python:
        files = [str(folder / "X.npy"), str(folder / "y.npy")]
        for path, array in zip(files, (X, y), strict=True):
            np.save(path, array)
        done = subprocess.run(
            [python, "-c", _DIFFPRIVLIB, *files], check=True, capture_output=True, text=True
        )
        found["diffprivlib_seconds"] = float(done.stdout)
    return found


def late(services, keys):
    """Replies with the default time grid, and how many were later than they were to be shown."""
    settings = services.settings.model_copy(update={"reply_grid_ms": Settings().reply_grid_ms})
    shown = replace(services, settings=settings)
    speed, shares = measured(settings.threads, settings.block_rows)
    services.pace.measured(speed, 1, shares)
    before = overruns()
    with served(shown) as url:
        with client(url, keys[0]) as http:
            alone = [ask(http) for _ in range(REPEATS)]
        found = many(url, keys)
    return {
        "grid_http_median": statistics.median(alone),
        "grid_fits": found["analysts_fits"] + REPEATS,
        "grid_fit_median": found["analysts_fit_median"],
        "grid_late": overruns() - before,
    }


def overruns():
    (metric,) = OVERRUNS.collect()
    return int(metric.samples[0].value)


def draw(found) -> None:
    """One bar a fit, in seconds on a logarithmic axis."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "benchmarks"
    import matplotlib.pyplot as plt

    bars = [(label, found[key]) for label, key in BARS if key in found]
    figure, axis = plt.subplots(figsize=(7, 0.42 * len(bars) + 0.9))
    labels, times = zip(*reversed(bars), strict=True)
    ours = [label.startswith("Reticent") for label in labels]
    axis.barh(labels, times, color=["tab:blue" if own else "0.7" for own in ours])
    for place, seconds_ in enumerate(times):
        axis.text(seconds_, place, f" {seconds_:.2g} s", va="center")
    axis.set_xscale("log")
    axis.set_xlim(right=3 * max(times))
    axis.set_xlabel(f"seconds, n = {N:,}, p = {P}, two cores")
    axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(IMAGES / "speed.svg", metadata={"Date": None})


def main() -> None:
    configure_logging("error")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        services, keys = installation(folder)
        with served(services) as url, client(url, keys[0]) as http:
            ask(http)
            settle()
            times = [ask(http) for _ in range(REPEATS)]
            found = {"http_seconds": min(times), "http_median": statistics.median(times)}
            ask(http, LOGISTIC)
            found["http_logistic_seconds"] = min(ask(http, LOGISTIC) for _ in range(REPEATS))
            found |= peers(folder)
            found |= many(url, keys)
            found |= late(services, keys)
    ours = found["http_seconds"]
    found["reads"] = ours / found["numpy_sum_seconds"]
    for peer in ("sklearn_huber", "statsmodels_rlm", "diffprivlib"):
        if f"{peer}_seconds" in found:
            found[f"times_{peer}"] = found[f"{peer}_seconds"] / ours
    logistic = found["http_logistic_seconds"]
    found["times_statsmodels_logit"] = found["statsmodels_logit_seconds"] / logistic
    draw(found)
    for key, value in found.items():
        print(f"{key:32} {value if isinstance(value, list) else round(value, 4)}")
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(json.dumps({"benchmark": "peers", "n": N, "p": P, "machine": machine} | found))


if __name__ == "__main__":
    main()
