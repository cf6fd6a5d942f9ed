"""The innermost cause is found, and the same failure has the same fingerprint on every machine."""

from __future__ import annotations

import ast
import traceback

import pytest

from daskscope.collector.fingerprint import Cause, fingerprint, from_exception, from_text, normalise_message, short_file


def raised(exc: BaseException) -> BaseException:
    try:
        raise exc
    except BaseException as caught:  # noqa: BLE001 - any exception type is tested
        return caught


def chained() -> BaseException:
    try:
        try:
            raise KeyError("column 7")
        except KeyError as inner:
            raise RuntimeError("could not load") from inner
    except RuntimeError as outer:
        return outer


def test_the_innermost_cause_is_named() -> None:
    cause = from_exception(chained())
    assert (cause.type, cause.message) == ("KeyError", "'column 7'")


def test_a_context_counts_if_there_is_no_cause() -> None:
    try:
        try:
            raise ValueError("first")
        except ValueError:
            raise TypeError("second")  # noqa: B904 - the implicit context is under test
    except TypeError as exc:
        assert from_exception(exc).type == "ValueError"


def test_a_suppressed_context_does_not_count() -> None:
    try:
        try:
            raise ValueError("first")
        except ValueError:
            raise TypeError("second") from None
    except TypeError as exc:
        assert from_exception(exc).type == "TypeError"


def test_a_cycle_of_causes_ends() -> None:
    first, second = ValueError("a"), TypeError("b")
    first.__cause__, second.__cause__ = second, first
    assert from_exception(first).type == "TypeError"


def test_a_chain_longer_than_any_real_one_ends() -> None:
    exc: BaseException = ValueError("0")
    for number in range(1000):
        outer = ValueError(str(number))
        outer.__cause__ = exc
        exc = outer
    assert from_exception(exc).type == "ValueError"


def test_an_exception_group_stands_for_its_first_member() -> None:
    class Group(Exception):
        exceptions = (raised(chained()), ValueError("other"))

    assert from_exception(Group("several")).type == "KeyError"


def test_an_exception_without_a_text_is_still_named() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

        __repr__ = __str__

    cause = from_exception(raised(Mute()))
    assert cause.type == "Mute"
    assert "raise" in cause.message


def test_variable_parts_of_a_message_do_not_matter() -> None:
    first = "worker tcp://10.0.0.1:4567 lost 'x-12ab' at 0x7f00aa, 3.5 MB in /data/a/part-1.parquet"
    other = "worker tcp://10.9.9.9:9999 lost 'y-98cd' at 0x1e00bb, 12 MB in /data/b/part-77.parquet"
    assert normalise_message(first) == normalise_message(other)


def test_an_apostrophe_does_not_begin_a_quotation() -> None:
    assert normalise_message("can't open 'a' and won't try") == "can't open <quoted> and won't try"


def test_the_fixed_text_of_a_message_matters() -> None:
    assert fingerprint("ValueError", "no column", []) != fingerprint("ValueError", "no row", [])


def test_the_type_matters() -> None:
    assert fingerprint("ValueError", "x", []) != fingerprint("TypeError", "x", [])


def test_the_place_of_installation_does_not_matter() -> None:
    first = [
        ("/opt/conda/lib/python3.11/site-packages/pandas/core/frame.py", "merge"),
        ("/home/ann/project/etl.py", "load"),
    ]
    other = [("C:\\py\\Lib\\site-packages\\pandas\\core\\frame.py", "merge"), ("/srv/bob/project/etl.py", "load")]
    assert fingerprint("E", "m", first) == fingerprint("E", "m", other)


def test_the_standard_library_has_no_prefix() -> None:
    assert short_file("/usr/lib/python3.12/json/decoder.py") == "json/decoder.py"


def test_a_notebook_cell_is_a_cell_in_every_session() -> None:
    assert short_file("/tmp/ipykernel_12/345.py") == short_file("/tmp/ipykernel_6/78.py") == "<cell>"


def test_frames_of_dask_do_not_matter() -> None:
    user = ("/home/ann/project/etl.py", "load")
    dask = ("/x/lib/python3.11/site-packages/dask/_task_spec.py", "__call__")
    assert fingerprint("E", "m", [dask, user]) == fingerprint("E", "m", [user])


def test_a_failure_inside_dask_is_identified_by_its_last_frame() -> None:
    first = ("/x/site-packages/dask/core.py", "get")
    other = ("/x/site-packages/dask/array.py", "slice")
    assert fingerprint("E", "m", [first]) != fingerprint("E", "m", [other])


def test_the_depth_of_a_recursion_does_not_matter() -> None:
    frame = ("/home/ann/project/etl.py", "walk")
    assert fingerprint("E", "m", [frame] * 3) == fingerprint("E", "m", [frame] * 900)


def test_text_and_exception_give_the_same_fingerprint() -> None:
    exc = raised(ValueError("bad value 3"))
    text = "".join(traceback.format_tb(exc.__traceback__))
    assert from_text(repr(exc), text) == from_exception(exc)


def test_text_and_exception_agree_on_a_key_error() -> None:
    exc = raised(KeyError("name"))
    text = "".join(traceback.format_tb(exc.__traceback__))
    assert from_text(repr(exc), text) == from_exception(exc)


def test_an_unusual_repr_still_has_a_type() -> None:
    assert from_text("<MyError code=5>", "") == Cause(
        "MyError", "<MyError code=5>", fingerprint("MyError", "<MyError code=5>", [])
    )


def test_a_fingerprint_is_the_same_in_every_version_of_this_package() -> None:
    # Fingerprints group failures of different runs, so this value must never change.
    assert fingerprint("ValueError", "bad value 3", [("/a/project/etl.py", "load")]) == "22f751462c5a3855"


def test_a_message_is_read_although_another_thread_parses(monkeypatch: pytest.MonkeyPatch) -> None:
    def mismatch(text: str) -> object:
        raise SystemError("AST constructor recursion depth mismatch (before=150, after=166)")

    assert from_text("ValueError('no such file')", "").message == "no such file"
    monkeypatch.setattr(ast, "literal_eval", mismatch)
    assert from_text("ValueError('no such file')", "").message == "'no such file'"
