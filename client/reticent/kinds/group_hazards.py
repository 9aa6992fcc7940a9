# SPDX-License-Identifier: Apache-2.0
"""One hazard regression a group, side by side, and the differences between groups."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reticent._drawing import axes_of
from reticent.kinds.hazard_regression import HazardResults
from reticent.results.design import Frame
from reticent.results.group_regressions import GroupRegressions


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class GroupHazards(GroupRegressions):
    """Released hazard regressions of every group, charged once: each of `fits` is one with all that
    one has, a baseline of its own included.

    >>> found = ds.hazard_regression("Surv(days, sold) ~ grade", by="waterfront", epsilon=2.0)
    >>> found.fits["1"].hazard_ratios()["grade"], found.compare("0", "1").conf_int()
    >>> found.table(exp=True)
    """

    @property
    def fits(self) -> Mapping[str, HazardResults]:
        """The fits by level of `by`."""
        return {
            str(group["level"]): HazardResults({**self.release, "result": group})
            for group in self.result["groups"]
        }

    def plot_survival(self, frame: Frame, ax: Any = None) -> Any:
        """Each group's predicted curve of a frame of one row, with pointwise 95 % bands; needs
        matplotlib, gives the Axes.
        """
        axes = axes_of(ax)
        for level, fit in self.fits.items():
            before = len(axes.lines)
            fit.plot_survival(frame, axes)
            axes.lines[before].set_label(level)
        axes.legend(title=self.by)
        return axes
