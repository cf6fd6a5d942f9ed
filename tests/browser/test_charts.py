"""Charts of a finished run: they fit, their colours can be told apart, and their lengths are true."""

from __future__ import annotations

from typing import Literal

import pytest
from playwright.sync_api import expect
from tests.browser.support import ReportFile, Visit, go


def test_the_transfer_matrix_fits_on_a_phone(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    page.set_viewport_size({"width": 390, "height": 844})
    shown = go(page, "bandwidth")
    assert shown.get_by_test_id("matrix").evaluate("e => e.scrollWidth - e.clientWidth") <= 0
    expect(shown.get_by_label("Worker pairs").locator("tbody tr td").first).to_contain_text("From")


def test_a_graph_fades_only_where_it_goes_on(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    page.emulate_media(reduced_motion="no-preference")
    fade = "e => getComputedStyle(e).getPropertyValue('--graph-fade')"
    graph = go(page, "groups").locator(".graph.groups")
    assert graph.evaluate("e => e.scrollWidth > e.clientWidth")
    expect(graph).to_have_css("background-image", "none")
    assert graph.evaluate(fade) == "32px"
    graph.evaluate("e => e.scrollTo(e.scrollWidth, 0)")
    page.wait_for_function(
        "e => getComputedStyle(e).getPropertyValue('--graph-fade') === '0px'", arg=graph.element_handle()
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_bars_of_hottest_lines_have_the_colours_of_the_flame_graph(
    visit: Visit, real: ReportFile, theme: Literal["light", "dark"]
) -> None:
    page = visit(real)
    page.emulate_media(color_scheme=theme)
    look = (
        "e => [e.className.match(/f-[a-z]+/)?.[0], getComputedStyle(e).backgroundColor, getComputedStyle(e).boxShadow]"
    )
    found = {}
    for view in ("overview", "profile"):
        shown = go(page, view)
        expect(shown.locator(".ibar > .edged").first).to_be_visible()
        found[view] = {tuple(mark.evaluate(look)) for mark in shown.locator(".edged").all()}
    # One colour for each of the four owners of code, on both pages and in the legend.
    assert found["overview"] == found["profile"]
    assert sorted(owner for owner, _, _ in found["profile"]) == ["f-dask", "f-lib", "f-native", "f-user"]
    assert all("inset" in edge for _, _, edge in found["profile"])


def test_a_bar_of_activities_has_one_segment_per_colour_as_long_as_its_time(visit: Visit, real: ReportFile) -> None:
    rows = go(visit(real), "fine").get_by_label("By task prefix").locator(".barrows .b")
    segments = "e => [...e.children].map(i => [i.className + i.style.background, getComputedStyle(i).minWidth])"
    several = [row for row in (row.evaluate(segments) for row in rows.all()) if len(row) > 1]
    assert several
    for row in several:
        assert len({colour for colour, _ in row}) == len(row), row
        assert {least for _, least in row} == {"auto"}
