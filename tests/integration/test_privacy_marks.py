"""No task input, no secret of the machine and no printed text is in a recording."""

from __future__ import annotations

import contextlib
import os
import socket
import time
import uuid
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.config
import distributed
import pytest
from dask.delayed import delayed

import daskscope
from daskscope import Recording
from daskscope.collector.aliases import Aliases
from daskscope.wire.decode import read_frame
from daskscope.wire.layout import FILE_MAGIC

# Untyped in distributed.
LocalCluster: Any = distributed.LocalCluster
Client: Any = distributed.Client


@pytest.fixture(autouse=True)
def importable_by_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[__name__.count(".")]))


class Marks:
    """Return texts that occur nowhere else. Made at run time, because the source of this file may be in a recording."""

    def __init__(self) -> None:
        self.all: dict[str, str] = {}

    def __call__(self, what: str) -> str:
        return self.all.setdefault(what, "mk" + uuid.uuid4().hex)


def take(*args: Any, **kwargs: Any) -> int:
    return len(args) + len(kwargs)


def fail(*args: Any, **kwargs: Any) -> None:
    raise ValueError("not what you gave me")


def fail_and_quote(text: str) -> None:
    raise LookupError(f"this is {text}")


def fail_like_dask(argument: str) -> None:
    import functools

    class WorkItem:
        def __repr__(self) -> str:
            return f"WorkItem(key='x', fn=<function fail>, args=({argument!r},), kwargs={{}})"

    import logging

    logging.getLogger("distributed.worker").error("Cannot run %r", WorkItem())
    logging.getLogger("distributed.worker").error(f"Error in {functools.partial(fail, argument)}")
    raise RuntimeError(f"Cannot run {WorkItem()!r}")


def fail_like_coffea(file: str, owner: str) -> None:
    """Fail as coffea does: its exception and its log line quote the chunk with the user's metadata."""
    import logging

    chunk = (
        f"WorkItem(dataset='ttbar', filename={file!r}, treename='Events', entrystart=0, entrystop=500, "
        f"fileuuid=b'\\x00)', usermeta={{'owner': {owner!r}}})"
    )
    logging.getLogger("distributed.worker").error("Cannot process %s and FileMeta(ttbar:%s:Events)", chunk, file)
    try:
        raise ValueError("the second half is bad")
    except ValueError as error:
        raise Exception(f"Failed processing file: {chunk}. The error was: {error!r}.") from error


class Unserializable:
    """A result that cannot be sent; Dask quotes it in its error."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __reduce__(self) -> Any:
        raise TypeError("cannot be sent")

    def __repr__(self) -> str:
        return f"Unserializable({self.text})"


def say(text: str) -> None:
    print(text)  # noqa: T201
    distributed.print(text)
    distributed.warn(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn(text, stacklevel=1)


def leak_environment(name: str) -> None:
    import logging

    logging.getLogger("analysis").warning("connecting with %s", os.environ[name])
    raise ConnectionError(f"refused {os.environ[name]}")


def quote_own_key() -> None:
    worker = distributed.get_worker()
    key = worker.get_current_task()
    import logging

    logging.getLogger("distributed.worker").warning("Task %r failed", key)
    logging.getLogger("distributed.worker").warning(f"Task '{key}' failed")
    logging.getLogger("analysis").warning(f"running {key}")
    raise LookupError(f"this is {key}")


def log(package: str, text: str) -> None:
    import logging

    logging.getLogger(f"{package}.any").warning(text)


def a_line_in_the_profile(seconds: float) -> int:
    stop, number = time.monotonic() + seconds, 0
    while time.monotonic() < stop:
        number += sum(range(1000))
    return number


def texts(recording: Recording) -> Iterator[tuple[str, str]]:
    """Return every text of every table."""
    for name in recording:
        table = recording[name]
        for column in table.definition.columns:
            for value in table[column.name]:
                if isinstance(value, str):
                    yield f"{name}.{column.name}", value
                elif isinstance(value, list):
                    yield from ((f"{name}.{column.name}", item) for item in value if isinstance(item, str))


def bodies(path: Path) -> bytes:
    """Return all frames of a file with their bodies decompressed."""
    data, offset, found = path.read_bytes(), len(FILE_MAGIC), b""
    while offset < len(data):
        frame = read_frame(data, offset)
        # The compressed part of a body comes first, after its length; the rest is plain.
        size = int.from_bytes(frame.body[:4], "little")
        found += zlib.decompress(frame.body[4 : 4 + size]) + frame.whole
        offset += frame.size
    return found


def where(text: str, path: Path) -> set[str]:
    found = {place for place, value in texts(daskscope.open_recording(path)) if text in value}
    return found | ({"raw"} if text.encode() in bodies(path) else set())


def swallow(future: Any) -> None:
    try:
        future.result()
    except Exception:  # noqa: BLE001 (the exception itself is not under test)
        pass


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Marks]]:
    path, mark = tmp_path_factory.mktemp("marks") / "run.daskscope", Marks()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DASKSCOPE_TEST_API_TOKEN", mark("environment"))
        config = {
            "daskscope.token": mark("daskscope token"),
            "some.api-key": mark("api key"),
            # Forked workers would have the environment of the first test.
            "distributed.worker.multiprocessing-method": "spawn",
        }
        with (
            dask.config.set(config),
            LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
            ) as cluster,
            Client(cluster) as client,
        ):
            # Do not turn warnings into errors: the client, in the scheduler's process, would log them.
            with warnings.catch_warnings(), daskscope.record(path, client, logs="all"):
                warnings.simplefilter("ignore")
                run(client, mark)
            yield path, mark


def run(client: Any, mark: Marks) -> None:
    submit, calls = client.submit, []
    for function, retries in ((take, 0), (fail, 0), (fail, 2)):
        kind = f"{function.__name__} {retries}"
        calls += [
            submit(function, mark(f"{kind} positional"), pure=False, retries=retries),
            submit(function, name=mark(f"{kind} keyword"), pure=False, retries=retries),
            submit(function, [mark(f"{kind} list")], {"k": (mark(f"{kind} dict"),)}, pure=False, retries=retries),
            submit(function, {mark(f"{kind} set")}, pure=False, retries=retries),
        ]
    calls += client.map(take, [mark("mapped")], [mark("mapped too")])
    calls.append(client.submit(take, delayed(mark("delayed"))))
    calls.append(client.compute(delayed(fail)(mark("delayed argument"), at=mark("delayed keyword"))))
    scattered = client.scatter({"a": mark("scattered")}, hash=False)
    calls.append(submit(fail, scattered, pure=False))
    calls.append(submit(fail_like_dask, mark("quoted argument"), pure=False))
    calls.append(submit(fail_like_coffea, mark("file of a chunk"), mark("metadata of a chunk"), pure=False, retries=1))
    calls.append(submit(Unserializable, mark("unserializable result"), pure=False))
    calls.append(submit(say, mark("said"), pure=False))
    calls.append(submit(leak_environment, "DASKSCOPE_TEST_API_TOKEN", pure=False))
    for call in calls:
        swallow(call)
    client.run(say, mark("said outside of a task"))


def test_the_workload_is_recorded(marked: tuple[Path, Marks]) -> None:
    path, _ = marked
    recording = daskscope.open_recording(path)
    assert where("not what you gave me", path) >= {"exceptions.message", "raw"}
    assert {"ok", "error", "retried"} <= set(recording["tasks"]["status"])
    assert any("connecting with ***" in text for text in recording["logs"]["message"])
    assert any("refused ***" in text for text in recording["exceptions"]["message"])
    chunk = "WorkItem(dataset='ttbar', entrystart=0, entrystop=500, …)"
    assert where(chunk, path) >= {"exceptions.message", "exceptions.traceback", "logs.message"}


def test_no_mark_is_in_the_recording(marked: tuple[Path, Marks]) -> None:
    path, mark = marked
    assert len(mark.all) > 20
    found = {what: where(text, path) for what, text in mark.all.items()}
    assert {what: places for what, places in found.items() if places} == {}


def switched(client: Any, path: Path, **switches: Any) -> dict[str, set[str]]:
    """Return where each kind of text is found in a recording with these switches."""
    key = f"keyed{uuid.uuid4().hex}-0x"
    message = "message" + uuid.uuid4().hex
    # A real name may be as short as "vm", which random bytes contain, too.
    host = "host" + uuid.uuid4().hex
    name = "name" + uuid.uuid4().hex
    logged = {package: f"{package}{uuid.uuid4().hex}" for package in ("distributed", "analysis")}
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as stack, distributed.span(name):
        patch.setattr(socket, "gethostname", lambda: host)
        stack.enter_context(daskscope.record(path, client, name=name, **switches))
        swallow(client.submit(fail_and_quote, message, pure=False))
        swallow(client.submit(take, 1, key=("tuple", key)))
        swallow(client.submit(take, 1, key=(f"{key}-tuple", 0)))
        swallow(client.submit(quote_own_key, pure=False, key=f"{key}-quoted"))
        swallow(client.submit(a_line_in_the_profile, 0.1, key=f"{key}-profile"))
        dependency = client.submit(fail, 1, key=f"{key}-dependency")
        swallow(client.submit(take, dependency, key=f"{key}-dependent"))
        swallow(client.submit(fail, 1, key=key))
        swallow(client.submit(a_line_in_the_profile, 0.4, pure=False))
        for package, text in logged.items():
            swallow(client.submit(log, package, text, pure=False))
        daskscope.log_metric(name, 1, name, client=client, label=name)
        try:
            raise KeyError(message)
        except KeyError:
            pass
    return {
        "code": where("swallow(client.submit(take", path),
        "profile": where("a_line_in_the_profile\t", path),
        "exception_text": where(message, path),
        # A task group has the part up to the hyphen.
        "keys": where(key.partition("-")[0], path),
        "names": where(name, path),
        "hostnames": where(host, path),
        "logs": where(logged["distributed"], path),
        "user_logs": where(logged["analysis"], path),
    }


def test_without_keys_functions_are_still_named(client: Any, tmp_path: Path) -> None:
    with daskscope.record(tmp_path / "run.daskscope", client, keys=False):
        swallow(client.submit(take, 1))
        swallow(client.submit(take, 2, key="chosen-1"))
        swallow(delayed(take)(3).compute())
        swallow(client.submit(a_line_in_the_profile, 0.3))
    recording, aliases = daskscope.open_recording(tmp_path / "run.daskscope"), Aliases(keys=False)
    expected = {"take", "a_line_in_the_profile", aliases.group("chosen")}
    assert set(recording["tasks"]["prefix"]) == expected
    assert set(recording["groups"]["prefix"]) == expected
    assert "a_line_in_the_profile" in set(recording["profiles"]["prefix"])
    assert {"take", "a_line_in_the_profile"} <= set(recording["activities"]["prefix"])


@pytest.mark.parametrize("switch", ["code", "profile", "exception_text", "keys", "names", "hostnames", "logs"])
def test_each_switch_keeps_its_text_out(switch: str, client: Any, tmp_path: Path) -> None:
    found = switched(client, tmp_path / "off.daskscope", **{switch: False})
    assert found[switch] == set()


def test_private_keeps_all_text_out(client: Any, tmp_path: Path) -> None:
    found = switched(client, tmp_path / "private.daskscope", private=True)
    assert {what: places for what, places in found.items() if places} == {}
    assert len(daskscope.open_recording(tmp_path / "private.daskscope")["tasks"]) > 4


def test_without_switches_these_texts_are_recorded(client: Any, tmp_path: Path) -> None:
    # Otherwise the test above would prove nothing.
    found = switched(client, tmp_path / "all.daskscope", logs="all")
    assert all(found.values()), found


def test_by_default_only_the_log_lines_of_users_are_left_out(client: Any, tmp_path: Path) -> None:
    found = switched(client, tmp_path / "default.daskscope")
    assert [what for what, places in found.items() if not places] == ["user_logs"]


def test_the_text_of_an_exception_that_ends_the_block(client: Any, tmp_path: Path) -> None:
    path, message = tmp_path / "run.daskscope", "message" + uuid.uuid4().hex
    with pytest.raises(KeyError), daskscope.record(path, client, exception_text=False):
        raise KeyError(message)
    assert where(message, path) == set()
    assert list(daskscope.open_recording(path)["windows"]["error"]) == ["KeyError"]
