# SPDX-License-Identifier: Apache-2.0
"""What the caller may still spend."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from reticent import _optional
from reticent._drawing import axes_of
from reticent._guarantee import Amount
from reticent._release import Release
from reticent._text import html_table, plain, text_table

History = Callable[[], Sequence[Release]]

_UNCHARGED = "cancelled"
_HEADER = ("data set", "rule", "promise", "total", "spent", "left", "left as ε")


@dataclass(frozen=True, slots=True)
class Account:
    """A budget for one data set. rule: "basic" (Σε, Σδ) or "zcdp" or "gdp" (Σρ and Σδ under one (ε,
    δ)). project: the name of the shared project whose it is; None: the caller's own.

    total, spent, remaining: in what the rule adds up. Under the last two that is rho and rho_delta;
    `total` has the epsilon and delta that were given, too, and the epsilon of the others is the one
    that their rho implies. spent_share: what of the promise is spent, in its ε; None of a server
    that does not say it.
    """

    dataset: str
    rule: str
    total: Amount
    spent: Amount
    remaining: Amount
    project: str | None = None
    spent_share: float | None = None

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Account":
        """From one entry of `GET /v1/budget`."""
        project, share = content.get("project"), content.get("spent_share")
        return cls(
            str(content["dataset"]),
            str(content["rule"]),
            Amount.from_json(content["total"]),
            Amount.from_json(content["spent"]),
            Amount.from_json(content["remaining"]),
            None if project is None else str(project),
            None if share is None else float(share),
        )


@dataclass(frozen=True, slots=True, repr=False)
class Budget:
    """The caller's accounts: `budget["name"]`, or iterate.

    >>> budget = client.budget()
    >>> budget["houses"].remaining.epsilon, budget.plot()
    """

    accounts: tuple[Account, ...]
    _history: History = field(default=lambda: (), compare=False)

    @classmethod
    def from_json(cls, content: Mapping[str, Any], history: History = lambda: ()) -> "Budget":
        """history: asks for the caller's releases, where they are wanted."""
        return cls(tuple(map(Account.from_json, content["accounts"])), history)

    def plot(self, ax: Any = None) -> Any:
        """What was left after each of your releases, by account; needs matplotlib, gives the Axes.

        Reads your releases from the server, for free. Drawn back from what is left now, as a share
        of the total, so that the line ends where `remaining` is.
        """
        return _burn_down(self.accounts, self._history(), ax)

    def to_frame(self) -> Any:
        """A pandas.DataFrame with one row for each account; needs pandas."""
        rows = [
            {
                "rule": account.rule,
                "total_epsilon": account.total.epsilon,
                "spent_epsilon": account.spent.epsilon,
                "spent_share": account.spent_share,
                "remaining_epsilon": account.remaining.epsilon,
                "total_delta": account.total.delta,
                "remaining_delta": account.remaining.delta,
                "total_rho": account.total.rho,
                "remaining_rho": account.remaining.rho,
                "remaining_rho_delta": account.remaining.rho_delta,
            }
            for account in self.accounts
        ]
        index = [account.dataset for account in self.accounts]
        return _optional.pandas().DataFrame(rows, index=index)

    def __iter__(self) -> Iterator[Account]:
        return iter(self.accounts)

    def __len__(self) -> int:
        return len(self.accounts)

    def __getitem__(self, dataset: str) -> Account:
        """The account for a data set, the caller's own before a project's. Raises KeyError."""
        for account in self.accounts:
            if account.dataset == dataset:
                return account
        known = ", ".join(account.dataset for account in self.accounts) or "none"
        raise KeyError(f"{dataset}: no account with this key; there is one for: {known}")

    def __repr__(self) -> str:
        return "\n".join(text_table(_HEADER, self._rows()))

    def _repr_html_(self) -> str:
        return html_table(_HEADER, self._rows())

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                account.dataset,
                account.rule,
                account.total.under("basic"),
                account.total.under(account.rule),
                _spent(account),
                account.remaining.under(account.rule),
                plain(account.remaining.epsilon),
            )
            for account in self.accounts
        ]


def _spent(account: Account) -> str:
    """The share of the promise, and the amount in what the rule adds up."""
    amount = account.spent.under(account.rule)
    share = account.spent_share
    return amount if share is None else f"{100 * share:.3g} % ({amount})"


def _burn_down(accounts: Sequence[Account], releases: Sequence[Release], ax: Any = None) -> Any:
    """What was left of each account after each release, as a share of its total; the Axes."""
    axes = axes_of(ax)
    for account in accounts:
        steps = left_after(account, releases)
        if steps:
            times, shares = zip(*steps, strict=True)
            axes.step(times, shares, "o-", where="post", label=account.dataset)
        else:
            axes.plot([], [], label=f"{account.dataset} (nothing asked yet)")
    axes.set_ylim(-3, 103)
    axes.tick_params(axis="x", rotation=30)
    kept = {"ε" if account.rule == "basic" else "ρ" for account in accounts}
    axes.set_ylabel(f"left of the budget's {' or '.join(sorted(kept))}, %")
    axes.set_title("Budget after each release", fontsize="medium")
    if len(accounts) > 1:
        axes.legend()
    return axes


def left_after(account: Account, releases: Sequence[Release]) -> list[tuple[datetime, float]]:
    """(time, percentage left) after each release on the account's data set, oldest first.

    Computed backwards from what is left now, so that it is true at the end; a credit or a changed
    total, which releases do not tell, would show as a higher or lower beginning.
    """
    unit = "epsilon" if account.rule == "basic" else "rho"
    charged = "rho_gdp" if account.rule == "gdp" else unit
    total, left = (float(getattr(a, unit) or 0.0) for a in (account.total, account.remaining))
    mine = [r for r in releases if r.dataset == account.dataset and r.status != _UNCHARGED]
    steps = []
    for release in sorted(mine, key=lambda r: r.created_at, reverse=True):
        share = 100 * min(1.0, left / total) if total else 0.0
        steps.append((datetime.fromisoformat(release.created_at), share))
        left += float(getattr(release.charged, charged) or 0.0)
    return steps[::-1]
