"""The flame graph (search, zoom, direction, filters) and fine metrics (units, prefixes, spans)."""

from __future__ import annotations

from playwright.sync_api import Page, expect
from tests.browser.support import ReportFile, Visit, choose, hash_of

from daskscope import units
from daskscope.analysis.executions import EXECUTED

STATUS = "[data-testid=view-profile] .flamestatus"


def pixels(page: Page) -> str:
    """Return the flame graph as an image, to detect changes."""
    shown: str = page.get_by_test_id("flame-canvas").evaluate("canvas => canvas.toDataURL()")
    return shown


def samples(report: ReportFile, **where: str) -> int:
    return int(report.total(report.report["flame"]["cube"], "count", **where))


def sampled(report: ReportFile, prefix: str) -> str:
    """Return the time that the tasks of a prefix ran, and their samples."""
    tasks = report.recording["tasks"].records("prefix", "status", "start_us", "stop_us")
    us = sum(stop - start for name, status, start, stop in tasks if name == prefix and status in EXECUTED)
    return f"{units.duration(us)} in {samples(report, kind='compute', prefix=prefix):,} sample"


def test_a_search_fades_other_frames_and_shows_the_matching_share(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#profile")
    expect(page.get_by_test_id("flame-canvas")).to_be_visible()
    before = pixels(page)

    page.get_by_test_id("flame-search").fill("spin")

    expect(page.locator(STATUS)).to_contain_text("“spin” matches")
    share = page.locator(STATUS).inner_text().partition("“spin” matches ")[2]
    assert share[:1].isdigit() and not share.startswith("0 %")
    assert pixels(page) != before
    page.get_by_test_id("flame-search").fill("no such function")
    expect(page.locator(STATUS)).to_contain_text("matches 0 %")


def test_a_click_zooms_in_and_a_button_zooms_out(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#profile")
    canvas = page.get_by_test_id("flame-canvas")
    expect(canvas).to_be_visible()
    page.mouse.move(0, 0)
    before = pixels(page)
    expect(page.locator(STATUS)).to_contain_text("all compute")

    # The third row has the hottest function, below all samples and the task call.
    canvas.click(position={"x": 20, "y": 50})
    page.mouse.move(0, 0)

    expect(page.get_by_role("button", name="Zoom out", exact=True)).to_be_visible()
    expect(page.locator(STATUS)).not_to_contain_text("all compute")
    page.get_by_role("button", name="Zoom out", exact=True).click()
    expect(page.locator(STATUS)).to_contain_text("all compute")
    page.mouse.move(0, 0)
    assert pixels(page) == before


def test_arrow_keys_move_and_enter_zooms(visit: Visit, real: ReportFile) -> None:
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
    # Not with its time: a task that is killed is sampled, and has no measured time.
    everything = samples(real, kind="compute")
    expect(said).to_contain_text(f" in {everything:,} samples")

    page.get_by_test_id("flame-prefix").select_option("spin")

    assert 0 < samples(real, kind="compute", prefix="spin") < everything
    expect(said).to_contain_text(sampled(real, "spin"))
    page.wait_for_function("location.hash.includes('prefix=spin')")


def test_every_kind_of_stack_can_be_selected(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#profile")
    kinds = real.report["flame"]["cube"]["keys"]["kind"]
    group = page.get_by_role("group", name="Stacks")
    for kind in [*kinds, *kinds]:
        group.get_by_role("button", name=kind, exact=True).click()
        expect(page.get_by_test_id("view-profile").locator(".callout").first).to_contain_text(
            f"{samples(real, kind=kind):,} sample"
        )
        expect(group.get_by_role("button", name=kind, exact=True)).to_have_attribute("aria-pressed", "true")


def test_a_prefix_of_the_overview_leads_to_its_profile(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    page.get_by_test_id("prefix-row").filter(has_text="read_events").first.click()
    expect(page.get_by_test_id("view-profile")).to_be_visible()
    assert hash_of(page) == "#profile?prefix=read_events"


def fine(report: ReportFile, unit: str, **where: str) -> str:
    """Return the total of the panel “By task prefix”."""
    return units.quantity(
        report.total(report.report["activities"], "value", unit=unit, context="execute", **where), unit
    )


def test_every_unit_of_fine_metrics_can_be_selected(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#fine")
    switch = page.get_by_test_id("unit-switch")
    by_prefix = page.get_by_role("region", name="By task prefix")
    all_units = real.report["activities"]["keys"]["unit"]
    assert {"seconds", "bytes", "count", "events"} <= set(all_units)
    page.get_by_test_id("fine-internal").check()
    # Twice, because the first unit is the default.
    for unit in [*all_units, *all_units]:
        switch.get_by_role("button", name=unit or "no unit", exact=True).click()
        chosen = switch.locator("[aria-pressed=true]")
        expect(chosen).to_have_text(unit or "no unit")
        if unit in ("seconds", "bytes", "count", "events"):
            expect(by_prefix).to_contain_text(f"{fine(real, unit)} in total")


def test_prefixes_and_spans_filter_fine_metrics(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#fine")
    by_prefix = page.get_by_role("region", name="By task prefix")
    expect(by_prefix).to_contain_text(f"{fine(real, 'seconds')} in total")

    choose(page, "fine-prefix", "read_events")
    expect(by_prefix).to_contain_text(f"{fine(real, 'seconds', prefix='read_events')} in total")
    expect(page.get_by_role("region", name="By activity")).to_contain_text("my-reader")
    page.get_by_role("button", name="Clear filters").click()
    expect(by_prefix).to_contain_text(f"{fine(real, 'seconds')} in total")

    span = next(s for s in real.report["spans"] if s["name"] == "reading")
    page.get_by_label("Span").select_option(span["span"])
    expect(by_prefix).to_contain_text(f"{fine(real, 'seconds', span=span['span'])} in total")
    page.wait_for_function("location.hash.includes('span=')")


def test_several_prefixes_and_activities_can_be_chosen(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#fine")
    by_prefix = page.get_by_role("region", name="By task prefix")
    cube = real.report["activities"]
    where = {"unit": "seconds", "context": "execute", "activity": "thread-cpu"}
    want = sum(real.total(cube, "value", prefix=prefix, **where) for prefix in ("read_events", "spin"))

    choose(page, "fine-prefix", "read_events", "spin")
    choose(page, "fine-activity", "CPU")

    expect(page.get_by_test_id("fine-prefix")).to_have_text("2 prefixes")
    expect(by_prefix).to_contain_text(f"{units.quantity(want, 'seconds')} in total")
    expect(page.get_by_test_id("fine-legend")).to_have_text("CPU")
    page.wait_for_function("location.hash.includes('label=thread-cpu')")
    page.reload()
    expect(by_prefix).to_contain_text(f"{units.quantity(want, 'seconds')} in total")


def test_internal_metrics_of_dask_are_shown_on_request(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#fine")
    contexts = page.locator("section[aria-label='All metrics'] tbody td:first-child")
    expect(contexts.filter(has_text="executing").first).to_be_visible()
    expect(contexts.filter(has_text="tick-duration")).to_have_count(0)

    page.get_by_test_id("fine-internal").check()

    expect(contexts.filter(has_text="tick-duration")).to_have_count(1)


def test_a_custom_metric_is_counted(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#fine?unit=events")
    total = fine(real, "events", activity="my-reader")
    assert total.endswith(" events")
    expect(page.get_by_role("region", name="By task prefix")).to_contain_text(f"{total} in total")
