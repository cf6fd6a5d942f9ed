"""Warnings are kept, inputs and secrets are not, and the user's logging still works."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator

import pytest

from daskscope.collector.aliases import Aliases
from daskscope.collector.logs import MAX_TEXT, LogCapture, SharedCapture
from daskscope.collector.privacy import Scrubber
from daskscope.collector.rows import Columns
from daskscope.model.tables import LOGS

COMPUTE_FAILED_2026 = (
    "Compute Failed\nKey:       %s\nState:     %s\nTask:  %s\nException: %r\nTraceback: %r\n",
    ("inc-123", "executing", "<Task inc(secret input)>", "ValueError('bad')", "File input.py"),
)
COMPUTE_FAILED_2023 = (
    "Compute Failed\nKey:       %s\nFunction:  %s\nargs:      %s\nkwargs:    %s\nException: %r\n",
    ("inc-123", "inc", "(secret input,)", "{'x': secret input}", "ValueError('bad')"),
)
worker_log = logging.getLogger("distributed.worker")


@pytest.fixture
def capture() -> Iterator[LogCapture]:
    yield from installed(LogCapture(Scrubber(["hunter2hunter2"])))


def installed(capture: LogCapture) -> Iterator[LogCapture]:
    capture.install()
    try:
        yield capture
    finally:
        capture.remove()


def messages(capture: LogCapture) -> list[str]:
    return list(capture.drain("w")["message"])


def only(columns: Columns) -> dict[str, object]:
    assert len(columns["message"]) == 1
    return {name: values[0] for name, values in columns.items()}


def test_a_warning_of_distributed_becomes_a_row(capture: LogCapture) -> None:
    worker_log.warning("Unmanaged memory use is high: %d%%", 80)
    row = only(capture.drain("tcp://w"))
    assert {name: row[name] for name in row if name != "time_us"} == {
        "worker": "tcp://w",
        "level": 30,
        "logger": "distributed.worker",
        "message": "Unmanaged memory use is high: 80%",
        "repeats": 1,
    }


def test_times_are_on_the_schedulers_clock() -> None:
    capture = LogCapture(Scrubber(), delay=lambda: 100.0)
    record = worker_log.makeRecord("distributed.worker", 30, "f", 1, "x", (), None)
    capture.emit(record)
    assert capture.drain("w")["time_us"] == [round((record.created + 100) * 1e6)]


@pytest.mark.parametrize("wanted", [False, True])
def test_a_users_warning_becomes_a_row_on_request(wanted: bool) -> None:
    for capture in installed(LogCapture(Scrubber(), user_loggers=wanted)):
        logging.getLogger("my.analysis").warning("no events")
        logging.getLogger("distributedly").warning("another package")
        assert messages(capture) == ["no events", "another package"] * wanted


@pytest.mark.parametrize("name", ["distributed.worker", "dask", "dask_jobqueue.core"])
def test_warnings_of_dasks_packages_become_rows(capture: LogCapture, name: str) -> None:
    logging.getLogger(name).warning("look")
    assert messages(capture) == ["look"]


def test_a_logger_that_does_not_propagate_is_captured(capture: LogCapture) -> None:
    logging.getLogger("distributed.client").error("lost the scheduler")
    assert messages(capture) == ["lost the scheduler"]


def test_a_record_that_passes_twice_is_kept_once(capture: LogCapture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("distributed"), "propagate", True)
    worker_log.warning("once")
    assert only(capture.drain("w"))["repeats"] == 1


def test_info_lines_are_not_kept(capture: LogCapture) -> None:
    worker_log.info("Start worker")
    assert messages(capture) == []


def test_a_stall_of_the_event_loop_is_kept_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Event loop was unresponsive in Scheduler for 3.50s."
    for wanted in (False, True):
        capture = LogCapture(Scrubber(), loop_stalls=wanted)
        capture.emit(worker_log.makeRecord("distributed.core", logging.INFO, "f", 1, text, (), None))
        assert messages(capture) == [text] * wanted


def test_lines_of_the_schedulers_logger_belong_to_the_scheduler(capture: LogCapture) -> None:
    logging.getLogger("distributed.scheduler").warning("worker lost")
    assert capture.drain("tcp://w")["worker"] == ["scheduler"]


def test_repeats_are_folded(capture: LogCapture) -> None:
    for _ in range(7):
        worker_log.warning("again")
    worker_log.warning("other")
    assert capture.drain("w")["repeats"] == [7, 1]


def test_the_oldest_lines_are_dropped_first_and_counted() -> None:
    for capture in installed(LogCapture(Scrubber(), max_lines=3)):
        for number in range(5):
            worker_log.warning("line %d", number)
        assert messages(capture) == ["line 2", "line 3", "line 4"]
        # Every user of the capture asks, but only the first gets the count.
        assert [capture.pop_dropped(), capture.pop_dropped()] == [2, 0]


def test_long_lines_are_cut(capture: LogCapture) -> None:
    worker_log.warning("x" * 100_000)
    (text,) = messages(capture)
    assert len(text) <= MAX_TEXT
    assert "characters cut" in text


def test_secrets_are_masked(capture: LogCapture) -> None:
    worker_log.warning("login with hunter2hunter2")
    assert messages(capture) == ["login with ***"]


@pytest.mark.parametrize(("template", "args"), [COMPUTE_FAILED_2026, COMPUTE_FAILED_2023])
def test_inputs_of_a_failed_task_are_left_out(capture: LogCapture, template: str, args: tuple[str, ...]) -> None:
    worker_log.error(template, *args)
    (text,) = messages(capture)
    assert "Key: inc-123" in text
    assert "Exception: ValueError('bad')" in text
    assert "input" not in text


def test_inputs_are_left_out_of_a_preformatted_message(capture: LogCapture) -> None:
    template, args = COMPUTE_FAILED_2023
    worker_log.error(template % args)
    (text,) = messages(capture)
    assert "Key: inc-123" in text
    assert "input" not in text


def test_an_unknown_layout_of_a_failed_task_keeps_only_its_head(capture: LogCapture) -> None:
    worker_log.error("Compute Failed\nKey: %s %s\nInputs: %s", "a", "b", "secret input")
    assert messages(capture) == ["Compute Failed"]


def test_inputs_of_a_failed_run_are_left_out(capture: LogCapture) -> None:
    worker_log.warning("Run Failed\nFunction: %s\nargs:     %s\nkwargs:   %s\n", "fix", "(secret input,)", "{}")
    assert messages(capture) == ["Run Failed\nFunction: fix"]


def test_data_that_cannot_be_serialized_is_left_out(capture: LogCapture) -> None:
    logging.getLogger("distributed.protocol.pickle").error("Failed to serialize %s.", ["secret input"])
    assert messages(capture) == ["Failed to serialize <list>."]


def log_an_exception() -> None:
    try:
        raise ValueError("private words")
    except ValueError:
        worker_log.exception("it failed")


def test_a_traceback_is_kept(capture: LogCapture) -> None:
    log_an_exception()
    (text,) = messages(capture)
    assert text.startswith("it failed\nTraceback")
    assert text.endswith("ValueError: private words")


def test_without_exception_text_only_the_type_is_kept() -> None:
    for capture in installed(LogCapture(Scrubber(), exception_text=False)):
        log_an_exception()
        template, args = COMPUTE_FAILED_2026
        worker_log.error(template, *args)
        assert messages(capture) == ["it failed\nValueError", "Compute Failed\nKey: inc-123"]


def test_daskscopes_own_lines_are_not_kept(capture: LogCapture) -> None:
    logging.getLogger("daskscope.collector").warning("about ourselves")
    assert messages(capture) == []


def test_a_line_that_cannot_be_written_is_counted_and_does_not_raise(capture: LogCapture) -> None:
    record = worker_log.makeRecord("distributed.worker", 30, "f", 1, "%d things", ("no number",), None)
    capture.emit(record)
    assert messages(capture) == []
    assert capture.pop_dropped() == 1


def test_an_argument_that_logs_does_not_recurse(capture: LogCapture) -> None:
    class Loud:
        def __str__(self) -> str:
            worker_log.warning("I am being written")
            return "loud"

    record = worker_log.makeRecord("distributed.worker", 30, "f", 1, "%s", (Loud(),), None)
    capture.emit(record)
    assert messages(capture) == ["loud"]


def test_a_removed_capture_keeps_nothing() -> None:
    capture = LogCapture(Scrubber())
    before = [list(logging.getLogger(name).handlers) for name in (None, "distributed", "distributed.client")]
    capture.install()
    capture.remove()
    worker_log.warning("unheard")
    assert messages(capture) == []
    assert before == [list(logging.getLogger(name).handlers) for name in (None, "distributed", "distributed.client")]


def test_every_column_of_the_table_is_there() -> None:
    assert tuple(LogCapture(Scrubber()).drain("w")) == LOGS.names


def test_a_process_has_one_capture_until_its_last_user_leaves() -> None:
    shared = SharedCapture()
    first = shared.acquire(lambda: LogCapture(Scrubber()))
    second = shared.acquire(lambda: LogCapture(Scrubber()), loop_stalls=True)
    assert first is second
    assert first.loop_stalls
    shared.release()
    worker_log.warning("heard")
    assert messages(first) == ["heard"]
    shared.release()
    worker_log.warning("unheard")
    assert messages(first) == []


def test_an_unhandled_warning_is_still_printed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[str] = []
    last = logging.Handler(logging.WARNING)
    monkeypatch.setattr(last, "emit", lambda record: printed.append(record.getMessage()))
    monkeypatch.setattr(logging, "lastResort", last)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    first, second = LogCapture(Scrubber([])), LogCapture(Scrubber([]))
    first.install()
    second.install()
    try:
        logging.getLogger("somebody").warning("look")
        logging.getLogger("somebody").info("do not look")
        logging.getLogger().addHandler(logging.NullHandler())
        logging.getLogger("somebody").warning("somebody listens")
    finally:
        first.remove()
        second.remove()

    assert printed == ["look"]


def test_the_users_own_logging_configuration_still_works(monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", logging.WARNING)
    capture = LogCapture(Scrubber([]), user_loggers=True)
    capture.install()
    try:
        logging.basicConfig(level=logging.INFO)
        assert len(root.handlers) == 1
        assert root.level == logging.INFO
    finally:
        capture.remove()


def test_records_pass_unchanged() -> None:
    seen: list[logging.LogRecord] = []
    capture = LogCapture(Scrubber([]), user_loggers=True)
    capture.install()
    handler = logging.Handler()
    handler.emit = seen.append  # type: ignore[assignment,method-assign]
    logger = logging.getLogger("somebody.else")
    logger.addHandler(handler)
    try:
        logger.warning("look")
    finally:
        logger.removeHandler(handler)
        capture.remove()
    assert not [name for name in vars(seen[0]) if "daskscope" in name]
    assert messages(capture) == ["look"]


def test_without_keys_dasks_lines_have_aliases() -> None:
    aliases = Aliases(keys=False)
    alias = aliases.key("customer-42")
    for capture in installed(LogCapture(Scrubber(), aliases=aliases)):
        worker_log.warning("Task %r marked as failed because %d workers died, %s used", "customer-42", 4, "1.5 GiB")
        worker_log.warning("Task 'customer-42' is gone on 'tcp://a:1'")
        worker_log.error(COMPUTE_FAILED_2026[0], "customer-42", "executing", "<Task>", "E('of customer-42')", "")
        try:
            raise KeyError("customer-42")
        except KeyError:
            worker_log.exception("lost")
        lines = messages(capture)
    assert lines[:3] == [
        f"Task {alias} marked as failed because 4 workers died, 1.5 GiB used",
        f"Task {alias} is gone on tcp://a:1",
        f"Compute Failed\nKey: {alias}\nException: E('of {alias}')",
    ]
    assert "customer-42" not in lines[3].splitlines()[-1]


@pytest.mark.parametrize("message", ["Error in %s", "Failed to serialize %s"])
def test_arguments_in_an_exception_are_left_out(capture: LogCapture, message: str) -> None:
    try:
        raise TypeError("Could not serialize object of type Frame", "secret data")
    except TypeError:
        worker_log.exception(message, functools.partial(print, "secret argument"))
    (text,) = messages(capture)
    assert "TypeError" in text
    assert "secret" not in text.replace('"secret ', "")
