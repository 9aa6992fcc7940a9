# SPDX-License-Identifier: Apache-2.0
"""Somebody at a page for the first time, step by step: what is done, how long it takes a person,
and how long the machine.

A person's time is the keystroke-level model's (Card, Moran & Newell 1980): .28 s a key, for
somebody who types now and then; 1.1 s to point at something and .2 s to press; .4 s from the mouse
to the keys; 1.35 s to think before each step. Beside it whatever is new on a page is read: 250
words a minute, up to half a minute a page.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Locator, Page

KEY, POINT, PRESS, HAND, THINK = 0.28, 1.1, 0.2, 0.4, 1.35
"""Seconds, of the source above."""

WORDS_A_SECOND = 250 / 60
LONGEST_READ = 30.0
"""Seconds: a longer page is skimmed."""


@dataclass(frozen=True, slots=True)
class WalkStep:
    """told: what is done, in words. person, machine: seconds. picture: its name; empty: none."""

    told: str
    person: float
    machine: float
    picture: str


@dataclass(slots=True)
class Walk:
    """shoot: draws the page as a picture of a name."""

    page: Page
    shoot: Callable[[str], None] = lambda _: None
    steps: list[WalkStep] = field(default_factory=list)
    _person: float = 0.0
    _machine: float = 0.0
    _seen: set[str] = field(default_factory=set)

    def press(self, control: Locator, awaited: Locator | None = None) -> None:
        """Presses something; where a page comes, until `awaited` stands on it, and reads that."""
        self._person += THINK + POINT + PRESS
        began = monotonic()
        control.click()
        if awaited is not None:
            awaited.first.wait_for()
            self._machine += monotonic() - began
            self.read()

    def fill(self, control: Locator, text: str) -> None:
        self._person += THINK + POINT + PRESS + 2 * HAND + KEY * len(text)
        control.fill(text)

    def choose(self, control: Locator, value: str) -> None:
        self._person += THINK + 2 * (POINT + PRESS)
        control.select_option(value)

    def give(self, control: Locator, path: str) -> None:
        """Chooses a file: a dialogue of the browser, with a double press in it."""
        self._person += 2 * (THINK + POINT + 2 * PRESS)
        control.set_input_files(path)

    def read(self) -> None:
        """What has not stood on a page before."""
        lines = set(self.page.locator("main").inner_text().splitlines()) - self._seen
        self._seen |= lines
        words = sum(len(line.split()) for line in lines)
        self._person += min(LONGEST_READ, words / WORDS_A_SECOND)

    def step(self, told: str, picture: str = "") -> None:
        """Ends a step, with what was done since the last one."""
        if picture:
            self.shoot(picture)
        self.steps.append(WalkStep(told, self._person, self._machine, picture))
        self._person = self._machine = 0.0

    @property
    def seconds(self) -> float:
        """Of person and machine."""
        return sum(each.person + each.machine for each in self.steps)
