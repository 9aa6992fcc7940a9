# SPDX-License-Identifier: Apache-2.0
"""Draws docs/images/demo.svg from the demo's real output: a private fit beside the noise-free
one.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from reticent._reading import read

ROOT = Path(__file__).resolve().parents[1]
NORMAL = 1.959964  # standard errors on each side of a 95 % interval of a normal estimate
SIZE = (8.4, 3.6)  # inches: the width of a README's column
PRIVATE, NOISE_FREE = "#1f4e79", "#9a6a00"


def main() -> None:
    """Runs `reticent demo --json`, which loads, serves and fits, and draws what it prints."""
    command = [str(ROOT / ".venv/bin/reticent"), "demo", "--json"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    document = json.loads(shown)
    draw(read(document["release"]), document["noise_free"]).savefig(
        ROOT / "docs/images/demo.svg", metadata={"Date": None}
    )


def draw(fit: Any, noise_free: dict[str, list[float]]) -> Any:
    """One row for each slope, on a scale of its own: both intervals, and their ratio. Returns the
    figure.
    """
    mpl.use("Agg")
    mpl.rcParams |= {"svg.hashsalt": "demo", "font.size": 9}
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the backend is set
    from matplotlib.lines import Line2D  # noqa: PLC0415

    rows = [i for i, name in enumerate(fit.names) if name != "Intercept"]
    figure, grid = plt.subplots(len(rows), 1, figsize=SIZE, layout="constrained")
    for axes, i in zip(grid, rows, strict=True):
        exact, error = noise_free["coefficients"][i], noise_free["standard_errors"][i]
        ends = np.asarray(fit.conf_int()[i])
        _interval(axes, float(fit.params[i]), ends, 1, PRIVATE)
        plain = np.array([exact - NORMAL * error, exact + NORMAL * error])
        _interval(axes, exact, plain, 0, NOISE_FREE)
        ratio = float(np.ptp(ends) / np.ptp(plain))
        axes.set_title(f"{ratio:.2f} times as wide", loc="right", fontsize=8, pad=2)
        axes.set_yticks([0.5], [fit.names[i]])
        axes.set_ylim(-0.6, 1.6)
        axes.tick_params(axis="y", length=0)
        axes.margins(x=0.15)
        axes.spines[["top", "right", "left"]].set_visible(False)
    epsilon = f"ε = {fit.guarantee.epsilon:g}"
    handles = [Line2D([], [], color=c, marker="o") for c in (PRIVATE, NOISE_FREE)]
    figure.legend(
        handles,
        [f"private, {epsilon}: what the analyst gets", "without noise: only the curator could"],
        loc="outside upper center",
        ncols=2,
        frameon=False,
    )
    return figure


def _interval(axes: Any, value: float, ends: Any, row: int, color: str) -> None:
    axes.plot(ends, [row, row], color=color, linewidth=3, solid_capstyle="butt")
    axes.plot([value], [row], "o", color="white", markeredgecolor=color, zorder=3)


if __name__ == "__main__":
    main()
