"""The flame graph: search, zoom, direction and filters; fine metrics: units, functions and spans."""

from __future__ import annotations

from playwright.sync_api import Page, expect
from tests.browser.support import ReportFile, Visit, hash_of

from daskscope import units

STATUS = "[data-testid=view-profile] .flamestatus"


def pixels(page: Page) -> str:
    """A picture of the flame graph, to see that it changed."""
    shown: str = page.get_by_test_id("flame-canvas").evaluate("canvas => canvas.toDataURL()")
    return shown


def samples(report: ReportFile, **where: str) -> int:
    return int(report.total(report.report["flame"]["cube"], "count", **where))


def amount(report: ReportFile, count: int) -> str:
    return units.duration(count * report.report["flame"]["seconds_per_sample"] * 1e6)


def test_a_search_dims_and_says_how_much_matches(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#profile")
    expect(page.get_by_test_id("flame-canvas")).to_be_visible()
    before = pixels(page)

    page.get_by_test_id("flame-search").fill("spin")

    expect(page.locator(STATUS)).to_contain_text("“spin” is in")
    share = page.locator(STATUS).inner_text().partition("“spin” is in ")[2]
    assert share[:1].isdigit() and not share.startswith("0 %")
    assert pixels(page) != before
    page.get_by_test_id("flame-search").fill("no such function")
    expect(page.locator(STATUS)).to_contain_text("is in 0 %")


def test_a_click_zooms_and_leads_back(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#profile")
    canvas = page.get_by_test_id("flame-canvas")
    expect(canvas).to_be_visible()
    page.mouse.move(0, 0)
    before = pixels(page)
    expect(page.locator(STATUS)).to_contain_text("all compute")

    # The third row: below all samples and the call of a task is the function that took longest.
    canvas.click(position={"x": 20, "y": 50})
    page.mouse.move(0, 0)

    expect(page.get_by_role("button", name="Zoom out", exact=True)).to_be_visible()
    expect(page.locator(STATUS)).not_to_contain_text("all compute")
    page.get_by_role("button", name="Zoom out", exact=True).click()
    expect(page.locator(STATUS)).to_contain_text("all compute")
    page.mouse.move(0, 0)
    assert pixels(page) == before


def test_arrows_walk_and_enter_zooms(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#profile")
    page.get_by_test_id("flame-canvas").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(STATUS)).not_to_contain_text("all compute")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Zoom out", exact=True)).to_be_visible()


def test_bottom_up_has_the_same_samples_in_another_order(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#profile")
    expect(page.get_by_test_id("flame-canvas")).to_be_visible()
    before = pixels(page)
    total = page.get_by_test_id("view-profile").locator(".callout").first.inner_text()

    page.get_by_role("group", name="Direction").get_by_role("button", name="Bottom up").click()

    page.wait_for_function("location.hash.includes('dir=up')")
    assert pixels(page) != before
    assert page.get_by_test_id("view-profile").locator(".callout").first.inner_text() == total
    page.get_by_role("group", name="Direction").get_by_role("button", name="Top down").click()
    page.wait_for_function("!location.hash.includes('dir=up')")
    expect(page.get_by_role("button", name="Top down")).to_have_attribute("aria-pressed", "true")
    assert pixels(page) == before


def test_a_prefix_has_its_own_profile(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#profile")
    said = page.get_by_test_id("view-profile").locator(".callout").first
    everything = samples(real, kind="compute")
    expect(said).to_contain_text(f"{amount(real, everything)} in {everything} samples")

    page.get_by_test_id("flame-prefix").select_option("spin")

    mine = samples(real, kind="compute", prefix="spin")
    assert 0 < mine < everything
    expect(said).to_contain_text(f"{amount(real, mine)} in {mine} samples")
    page.wait_for_function("location.hash.includes('prefix=spin')")


def test_every_kind_of_stack_can_be_chosen_and_left(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#profile")
    kinds = real.report["flame"]["cube"]["keys"]["kind"]
    group = page.get_by_role("group", name="Whose stacks")
    for kind in [*kinds, *kinds]:
        group.get_by_role("button", name=kind, exact=True).click()
        expect(page.get_by_test_id("view-profile").locator(".callout").first).to_contain_text(
            f"{samples(real, kind=kind):,} samples"
        )
        expect(group.get_by_role("button", name=kind, exact=True)).to_have_attribute("aria-pressed", "true")


def test_a_prefix_of_the_overview_leads_to_its_profile(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    page.get_by_test_id("prefix-row").filter(has_text="read_events").first.click()
    expect(page.get_by_test_id("view-profile")).to_be_visible()
    assert hash_of(page) == "#profile?prefix=read_events"


def fine(report: ReportFile, unit: str, **where: str) -> str:
    """The sum that the panel “By function” names."""
    return units.quantity(
        report.total(report.report["activities"], "value", unit=unit, context="execute", **where), unit
    )


def test_units_of_fine_metrics(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#fine")
    switch = page.get_by_test_id("unit-switch")
    by_function = page.get_by_role("region", name="By function")
    all_units = real.report["activities"]["keys"]["unit"]
    assert {"seconds", "bytes", "count", "events"} <= set(all_units)
    # There and back again: the first of them is what is shown without a choice.
    for unit in [*all_units, *all_units]:
        switch.get_by_role("button", name=unit or "no unit", exact=True).click()
        chosen = switch.locator("[aria-pressed=true]")
        expect(chosen).to_have_text(unit or "no unit")
        if unit in ("seconds", "bytes", "count", "events"):
            expect(by_function).to_contain_text(f"{fine(real, unit)} in all")


def test_functions_and_spans_filter_fine_metrics(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#fine")
    by_function = page.get_by_role("region", name="By function")
    expect(by_function).to_contain_text(f"{fine(real, 'seconds')} in all")

    page.get_by_test_id("fine-prefix").select_option("read_events")
    expect(by_function).to_contain_text(f"{fine(real, 'seconds', prefix='read_events')} in all")
    expect(page.get_by_role("region", name="By activity")).to_contain_text("my-reader")
    page.get_by_role("button", name="Clear").click()
    expect(by_function).to_contain_text(f"{fine(real, 'seconds')} in all")

    span = next(s for s in real.report["spans"] if s["name"] == "reading")
    page.get_by_label("Span").select_option(span["span"])
    expect(by_function).to_contain_text(f"{fine(real, 'seconds', span=span['span'])} in all")
    page.wait_for_function("location.hash.includes('span=')")


def test_a_custom_metric_is_counted(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#fine?unit=events")
    total = fine(real, "events", activity="my-reader")
    assert total.endswith(" events")
    expect(page.get_by_role("region", name="By function")).to_contain_text(f"{total} in all")
