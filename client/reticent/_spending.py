# SPDX-License-Identifier: Apache-2.0
"""What an answer may cost: an epsilon, or the width that its intervals are to have, and who is
asked before it is spent.

With `ci_ratio` or `half_width` the server's plan finds the least epsilon, which is free; then the
cost is told, and in a notebook or at a prompt it is asked about. Nobody is asked where `epsilon` is
given beside it (the most that may be spent) or `confirm=True`. A script that can ask nobody, and
gave neither, spends nothing: ConfirmationNeeded has the plan.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from reticent._checks import finite
from reticent._errors import ConfirmationNeeded, InvalidPrivacy, UselessForecast
from reticent._plan import Plan
from reticent._text import plain

Widths = float | Mapping[str, float]
DryRun = Literal["warn"]


@dataclass(frozen=True, slots=True)
class Spending:
    """What a method was given beside its question.

    epsilon: the cost, or with ci_ratio or half_width the most that may be spent. ci_ratio: the
    widest interval over the same interval without privacy; by name, of those alone. half_width:
    half of the 95 % interval in the units of the data. confirm: True: nobody is asked; False:
    nothing is spent without being asked; None: asked where somebody can be, as above. dry_run:
    "warn": nothing is spent where the forecast is useless.
    """

    epsilon: float | None = None
    delta: float | None = None
    ci_ratio: Widths | None = None
    half_width: Widths | None = None
    confirm: bool | None = None
    dry_run: DryRun | None = None
    idempotency_key: str | None = None

    def or_else(self, usual: "Spending") -> "Spending":
        """The same, with what is usual where a method was given neither an epsilon nor a width."""
        if (self.epsilon, self.ci_ratio, self.half_width) != (None, None, None):
            return self
        return Spending(
            usual.epsilon,
            self.delta if self.delta is not None else usual.delta,
            usual.ci_ratio,
            usual.half_width,
            self.confirm if self.confirm is not None else usual.confirm,
            self.dry_run if self.dry_run is not None else usual.dry_run,
            self.idempotency_key,
        )

    @property
    def wanted(self) -> dict[str, Any] | None:
        """The widths as the server reads them; None: the epsilon is given."""
        if self.ci_ratio is None and self.half_width is None:
            if self.epsilon is None:
                raise InvalidPrivacy("Give epsilon, ci_ratio or half_width.")
            return None
        if self.ci_ratio is not None and self.half_width is not None:
            raise InvalidPrivacy("Give either ci_ratio or half_width.")
        if self.ci_ratio is not None:
            return {"ci_ratio": _widths("ci_ratio", self.ci_ratio)}
        return {"half_width": _widths("half_width", self.half_width)}

    @property
    def needs_plan(self) -> bool:
        """Whether the server is asked for a plan before anything is spent."""
        if self.dry_run not in {None, "warn"}:
            raise InvalidPrivacy('dry_run is "warn" or None.')
        return self.wanted is not None or self.dry_run is not None or self.confirm is False

    def settled(self, plan: Plan, ask: Callable[[str], bool] | None = None) -> float:
        """The epsilon to spend on a plan. ask: a yes or no to a question, None: of whoever is at
        the prompt.

        Raises UselessForecast, ConfirmationNeeded; nothing is spent then.
        """
        if self.dry_run is not None and plan.useless:
            raise UselessForecast(
                f"Nothing was spent: the forecast leaves no use for {', '.join(plan.useless)} at "
                f"epsilon = {plain(plan.cost.epsilon)}. Ask for less at once, or spend more.",
                plan=plan,
            )
        epsilon = float(plan.cost.epsilon or 0.0)
        if self.confirm is True:
            return epsilon
        if self.confirm is None and (self.wanted is None or self.epsilon is not None):
            return epsilon
        self._confirmed(plan, ask or at_prompt())
        return epsilon

    def _confirmed(self, plan: Plan, ask: Callable[[str], bool] | None) -> None:
        told = f"This costs {plan.cost}. {' '.join(plan.coverage)}".strip()
        if ask is not None and ask(f"{told}\nSpend it? [y/N] "):
            return
        advice = (
            "Nothing was spent."
            if ask is not None
            else (
                "Nothing was spent, as nobody can be asked here: give confirm=True, or epsilon= "
                "as the most to spend."
            )
        )
        raise ConfirmationNeeded(f"{advice} {told}", plan=plan)


def at_prompt() -> Callable[[str], bool] | None:
    """Asks whoever sits at a notebook or an interactive Python; None where nobody does."""
    in_notebook = "ipykernel" in sys.modules and "IPython" in sys.modules
    if not (in_notebook or hasattr(sys, "ps1") or sys.flags.interactive):
        return None
    return lambda question: input(question).strip().lower() in {"y", "yes"}


def _widths(name: str, widths: Any) -> Any:
    error = InvalidPrivacy(f"{name} must be a finite number, or finite numbers by name.")
    if isinstance(widths, Mapping):
        return {str(key): finite(value, error) for key, value in widths.items()}
    return finite(widths, error)
