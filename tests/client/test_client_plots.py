# SPDX-License-Identifier: Apache-2.0
"""Plots, drawn by matplotlib: what is on them is what was released."""

from collections.abc import Iterator
from typing import Any

import httpx
import matplotlib as mpl
import numpy as np
import pytest

import reticent
from support.client.replying_server import DATASET, PROBABILITIES, Server, release

mpl.use("Agg")

ACCOUNT = {
    "dataset": "houses",
    "rule": "zcdp",
    "total": {"epsilon": 2.0, "delta": 1e-6, "rho": 0.1},
    "spent": {"epsilon": 1.0, "rho": 0.06, "rho_delta": 0.0},
    "remaining": {"epsilon": 1.1, "rho": 0.04, "rho_delta": 1e-7},
}


@pytest.fixture(autouse=True)
def figures() -> Iterator[None]:
    """Every figure can be drawn, and is closed."""
    from matplotlib import pyplot as plt

    yield
    for number in plt.get_fignums():
        plt.figure(number).canvas.draw()
    plt.close("all")


def charged(day: int, rho: float, **changes: Any) -> dict[str, Any]:
    cost = {"epsilon": 1.0, "delta": 1e-6, "rho": rho}
    at = f"2026-01-0{day}T00:00:00+00:00"
    return release("count", charged=cost, created_at=at, id=f"rel_{day}", **changes)


def budget(server: Server, *documents: dict[str, Any]) -> reticent.Budget:
    page = {"releases": list(reversed(documents)), "next_offset": None}
    server.replies = [httpx.Response(200, json={"accounts": [ACCOUNT]})]
    server.answer = lambda _: httpx.Response(200, json=page)
    return server.client().budget()


def test_a_burn_down_ends_at_what_is_left(server: Server) -> None:
    found = budget(
        server,
        charged(1, 0.03),
        charged(2, 0.02, dataset="flats"),
        charged(3, 0.02, status="cancelled", result=None),
        charged(4, 0.01, status="no_reply", result=None),
        charged(5, 0.02),
    )
    assert len(server.requests) == 1  # the releases are asked for when they are drawn
    (line,) = found.plot().lines
    assert [t.day for t in line.get_xdata()] == [1, 4, 5]
    np.testing.assert_allclose(line.get_ydata(), [70, 60, 40])
    assert line.get_drawstyle() == "steps-post"


def test_a_burn_down_of_an_untouched_account(server: Server) -> None:
    axes = budget(server).plot()
    assert axes.lines[0].get_label() == "houses (nothing asked yet)"


def test_a_credit_is_no_more_than_the_whole(server: Server) -> None:
    (line,) = budget(server, charged(1, 9.0), charged(2, 9.0)).plot().lines
    np.testing.assert_allclose(line.get_ydata(), [100, 40])


@pytest.mark.slow
def test_the_profile_has_a_panel_for_each_column(server: Server) -> None:
    figure = server.dataset().profile().plot()
    panels = [axes for axes in figure.axes if axes.axison]
    assert [axes.get_title() for axes in panels] == [
        "price",
        "grade (2.0 % missing)",
        "zone",
        "new",
    ]
    (price,) = panels[0].lines
    np.testing.assert_allclose(price.get_ydata(), PROBABILITIES)
    np.testing.assert_allclose(price.get_xdata(), 1e6 * np.array(PROBABILITIES))
    assert [patch.get_width() for patch in panels[2].patches] == [12_000, 7_990, 12]


def test_without_a_profile_there_is_nothing_to_plot(server: Server) -> None:
    server.always(200, DATASET | {"profile": None})
    with pytest.raises(reticent.NotFound, match="ask its curator"):
        server.client().dataset("houses").profile().plot()


@pytest.mark.slow
def test_coefficients_that_would_hide_each_other_have_axes_of_their_own() -> None:
    document = release()
    wide = np.array(document["result"]["confidence_intervals"], dtype=np.float64)
    wide[2] = wide[2].mean() + 1000 * (wide[2] - wide[2].mean())
    apart = reticent.RegressionResults(
        document | {"result": document["result"] | {"confidence_intervals": wide.tolist()}}
    )
    first = apart.plot()
    assert [axes.get_yticklabels()[0].get_text() for axes in first.figure.axes] == [
        *apart.names[1:4],
        "x1:x2 (not identifiable)",
    ]
    np.testing.assert_allclose(first.lines[0].get_xdata(), wide[1])
    narrow = np.diff(first.get_xlim())[0]
    assert narrow < 10 * np.diff(wide[1])[0]  # its own scale, and it can be seen
    from matplotlib import pyplot as plt

    given = plt.subplots()[1]
    assert apart.plot(given) is given
    assert len(given.figure.axes) == 1
    assert len(reticent.RegressionResults(document).plot().figure.axes) == 1


def test_a_fit_is_drawn(server: Server) -> None:
    fit = reticent.RegressionResults(release())
    labels = [text.get_text() for text in fit.plot().get_yticklabels()]
    assert labels == ["x1:x2 (not identifiable)", "g[b]", "x2", "x1"]


def test_frames(server: Server) -> None:
    profile = server.dataset().profile().to_frame()
    assert profile.loc["price", "50%"] == pytest.approx(5e5)
    assert profile.loc["grade", "missing"] == 401
    assert list(profile.index) == ["price", "grade", "zone", "new"]
    account = budget(server).to_frame().loc["houses"]
    assert (account["rule"], account["remaining_rho"]) == ("zcdp", 0.04)
    (row,) = reticent.Estimate(release("count")).to_frame().to_dict("records")
    assert (row["value"], row["lower"] < 523.5 < row["upper"]) == (523.5, True)


def test_a_fit_in_a_notebook_is_a_table_and_escaped() -> None:
    document = release()
    document["result"]["terms"][1] = "<script>"
    shown = reticent.RegressionResults(document)._repr_html_()
    assert shown.count("<tr>") == 6
    assert "&lt;script&gt;" in shown
    assert "<script>" not in shown
    assert "differentially private" in shown
