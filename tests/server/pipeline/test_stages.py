# SPDX-License-Identifier: Apache-2.0
"""Every module of the pipeline stands under one stage of a request."""

from pathlib import Path

from reticent_server import pipeline

STAGES = ("ask", "plan", "pay", "compute", "show")
WIDTH = 10  # columns of the stages' names


def test_each_module_stands_under_one_stage() -> None:
    lines = (pipeline.__doc__ or "").split("\n\n")[1].splitlines()
    heads = tuple(line.split()[0] for line in lines if not line.startswith(" "))
    named = [word.strip(",") for line in lines for word in line[WIDTH:].split()]
    modules = [path.stem for path in Path(pipeline.__path__[0]).glob("[!_]*.py")]
    assert heads == STAGES
    assert sorted(named) == sorted(modules)
