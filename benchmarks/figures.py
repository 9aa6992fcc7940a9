# SPDX-License-Identifier: Apache-2.0
"""Plots of the benchmarks: panels that share their axes, saved as SVG that does not change by
itself.
"""

from math import ceil
from pathlib import Path

import matplotlib as mpl

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def panels(rows, columns):
    """A figure and its axes (rows, columns)."""
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "benchmarks"
    import matplotlib.pyplot as plt

    size = (3.3 * columns + 0.6, 2.7 * rows + 0.9)
    return plt.subplots(rows, columns, figsize=size, sharex=True, sharey=True, squeeze=False)


def save(figure, axes, name, columns=4) -> None:
    """With one legend below, to docs/images/NAME.svg."""
    handles = {}
    for axis in axes.ravel():
        axis.grid(alpha=0.3)
        found, labels = axis.get_legend_handles_labels()
        handles |= dict(zip(labels, found, strict=True))
    figure.legend(
        handles.values(), handles.keys(), loc="lower center", ncols=columns, fontsize="small"
    )
    inches = 0.2 + 0.22 * ceil(len(handles) / columns)
    figure.tight_layout(rect=(0, inches / figure.get_figheight(), 1, 1))
    IMAGES.mkdir(exist_ok=True)
    figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None})
