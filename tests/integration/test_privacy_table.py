"""Sixty secrets, in each place where a text can come from, with each position of the switches: none is in any byte that is written.

``pytest -s`` prints the table. A control run without the scrubber shows that every secret arrives where it would be found.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import sys
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.config
import distributed
import pytest
from tests.helpers.example_secrets import Example, examples
from tests.helpers.ingest_server import Server
from tests.helpers.report_text import page_text

import daskscope
from daskscope import analytics
from daskscope.report.document import report_page
from daskscope.wire.decode import read_frame
from daskscope.wire.layout import FILE_MAGIC

Client: Any = distributed.Client
LocalCluster: Any = distributed.LocalCluster
annotate: Any = vars(dask)["annotate"]

PLACES = ("exception message", "literal in code", "key", "log line", "name", "environment")
SWITCHES: dict[str, dict[str, Any]] = {
    "default": {},
    "everything": {"logs": "all", "topics": ("*",), "children": True},
    # Each switch is off in one of two runs and on in the other: every run takes 2 s of CPU time.
    "no keys, code and failures": {"keys": False, "code": False, "exception_text": False, "topics": ()},
    "no names, logs and profile": {"names": False, "hostnames": False, "logs": False, "profile": False},
    "private": {"private": True},
}


class Secrets(dict[str, list[Example]]):
    """Secrets by place; each place has its own, so that a found secret tells where it came from."""

    def __init__(self) -> None:
        seed = uuid.uuid4().int
        super().__init__({place: examples(seed + number) for number, place in enumerate(PLACES)})

    def found_in(self, texts: list[str]) -> dict[str, list[str]]:
        """Return the names of the found secrets by place."""
        # Most texts are there many times, and every secret is searched in all of them.
        everything = "\n".join(set(texts))
        return {place: [item.name for item in some if item.secret in everything] for place, some in self.items()}


def take(*_: Any) -> int:
    return 1


def fail(text: str) -> None:
    try:
        raise KeyError(f"cause {text}")
    except KeyError as error:
        raise ValueError(f"cannot use {text}") from error


def log(text: str) -> None:
    import logging

    logging.getLogger("distributed.worker").warning("Cannot use %s", text)
    logging.getLogger("analysis").error(f"cannot use {text}")


def calling_code(directory: Path, secrets: list[Example]) -> Any:
    """Return a module with one function per secret, which has the secret as a literal and submits a task that fails."""
    lines = ["import distributed", "def fail(*args): raise ValueError('bad')"]
    for number, item in enumerate(secrets):
        lines += [
            f"def call_{number}(client):",
            f"    secret = {item.text!r}",
            "    return client.submit(len, secret, pure=False)",
            f"def fail_{number}(*_):",
            f"    return fail({item.text!r})",
        ]
    path = directory / f"code_{uuid.uuid4().hex}.py"
    path.write_text("\n".join(lines) + "\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Dask parses the function that submits, each time: short ones take a third of the time.
def submit(client: Any, function: Any, *args: Any, **options: Any) -> Any:
    return client.submit(function, *args, **options)


def work(client: Any, secrets: Secrets, directory: Path) -> None:
    """Put every secret into its place."""
    calls = []
    for item in secrets["exception message"]:
        calls.append(submit(client, fail, item.text, pure=False))
    for item in secrets["log line"]:
        calls.append(submit(client, log, item.text, pure=False))
    for item in secrets["key"]:
        calls.append(submit(client, take, key=item.text))
        calls.append(submit(client, fail, "nothing", key=f"fail {item.text}"))
        calls.append(submit(client, take, key=("x", item.text)))
    for item in secrets["name"]:
        with distributed.span(item.text), annotate(note=item.text, resources={}):
            calls.append(submit(client, take, pure=False))
        daskscope.log_metric(f"m {item.text}", 1, item.text[:20], client=client, label=item.text)
    module = calling_code(directory, secrets["literal in code"])
    distributed.wait(calls)
    for number in range(len(secrets["literal in code"])):
        # One at a time: Dask joins what is submitted while another computation runs.
        distributed.wait(getattr(module, f"call_{number}")(client))
        calls.append(submit(client, getattr(module, f"fail_{number}"), pure=False))
        distributed.wait(calls[-1:])


@contextlib.contextmanager
def environment(secrets: list[Example]) -> Iterator[None]:
    """Set secrets in the environment under names that say nothing, and in settings that are recorded."""
    with pytest.MonkeyPatch.context() as patch:
        for number, item in enumerate(secrets):
            patch.setenv(f"TEST_SETTING_{number}", item.text)
        settings = {str(number): item.text for number, item in enumerate(secrets)}
        with dask.config.set({"array.chunk-size": settings, "some.settings": settings}):
            yield


@contextlib.contextmanager
def cluster() -> Iterator[Any]:
    options = {"n_workers": 1, "threads_per_worker": 4, "processes": False, "dashboard_address": None}
    with LocalCluster(**options) as made, Client(made) as client:
        yield client


def texts_of(path: Path) -> list[str]:
    """Return every text of a recording, and every byte of its frames, decompressed and as written."""
    recording = daskscope.open_recording(path)
    found = [
        str(value)
        for name in recording
        for column in recording[name].definition.columns
        if column.kind in ("str", "str[]")
        for value in recording[name][column.name]
    ]
    return [*found, path.read_bytes().decode("latin-1"), *decompressed(path.read_bytes(), len(FILE_MAGIC))]


def decompressed(data: bytes, offset: int) -> Iterator[str]:
    while offset < len(data):
        frame = read_frame(data, offset)
        size = int.from_bytes(frame.body[:4], "little")
        yield zlib.decompress(frame.body[4 : 4 + size]).decode("latin-1")
        offset += frame.size


def report_texts(path: Path) -> list[str]:
    """Return the page of a report as written, and what a reader of the page gets."""
    page = path.with_suffix(".html")
    page.write_bytes(report_page(daskscope.open_recording(path), title="report"))
    recording = daskscope.open_recording(page)
    texts = [str(value) for name in recording for column in recording[name] for value in recording[name][column]]
    return [page_text(page.read_text()), *texts]


def print_table(rows: dict[str, dict[str, list[str]]]) -> None:
    print(f"\n{'secrets found of 50':20}" + "".join(f"{place:>20}" for place in PLACES))  # noqa: T201
    for name, found in rows.items():
        print(f"{name:20}" + "".join(f"{len(found[place]):>20}" for place in PLACES))  # noqa: T201


@pytest.mark.timeout(300)
def test_no_secret_is_in_a_recording_or_its_report(tmp_path: Path) -> None:
    rows: dict[str, dict[str, list[str]]] = {}
    for name, switches in SWITCHES.items():
        secrets, path = Secrets(), tmp_path / f"{name}.daskscope"
        chosen = " and ".join(item.text for item in secrets["name"])
        with environment(secrets["environment"]), cluster() as client:
            with daskscope.record(path, client, name=chosen, **switches):
                work(client, secrets, tmp_path)
            rows[name] = secrets.found_in([*texts_of(path), *report_texts(path)])
            assert daskscope.open_recording(path)["tasks"].rows > 300
    print_table(rows)
    leaks = {(name, place): found for name, row in rows.items() for place, found in row.items() if found}
    assert leaks == {}


def test_no_secret_is_in_segment_files_or_posts_to_a_server(tmp_path: Path) -> None:
    secrets, server, segments = Secrets(), Server(), tmp_path / "segments"
    server.answers.append((201, {}, json.dumps({"token": "one-cluster", "account": "physics"}).encode()))
    try:
        config = {
            "daskscope.server": server.url,
            "daskscope.directory": str(segments),
            "daskscope.analytics.logs": "all",
        }
        config["daskscope.name"] = " ".join(item.text for item in secrets["name"])
        with environment(secrets["environment"]), dask.config.set(config), cluster() as client:
            analytics.register(client)
            work(client, secrets, tmp_path)
            analytics.unregister(client)
        posts = list(server.bodies)
    finally:
        server.close()
    files = [file.read_bytes() for file in sorted(segments.rglob("*")) if file.is_file()]
    assert files
    assert posts
    written = [data.decode("latin-1") for data in (*files, *posts)]
    written += [text for data in posts for text in decompressed(data, 0)]
    recording = daskscope.open_recording(segments)
    written += [str(value) for name in recording for column in recording[name] for value in recording[name][column]]
    assert recording["exceptions"].rows > 50
    assert {place: found for place, found in secrets.found_in(written).items() if found} == {}


def test_without_the_scrubber_every_secret_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Otherwise the tests above would prove nothing.
    secrets, path = Secrets(), tmp_path / "control.daskscope"
    with environment(secrets["environment"]), cluster() as client:
        with daskscope.record(tmp_path / "first.daskscope", client):
            pass
        # The recorder runs a copy of the package's source, under another name.
        for module in [module for name, module in sys.modules.items() if name.endswith("collector.privacy")]:
            monkeypatch.setattr(module.Scrubber, "scrub", lambda _, text: text)
            monkeypatch.setattr(module.Scrubber, "is_clean", lambda *_: True)
        name = " and ".join(item.text for item in secrets["name"])
        with daskscope.record(path, client, name=name, logs="all", topics=("*",)):
            work(client, secrets, tmp_path)
    # Line breaks of the private key are escaped in some places, so its body is compared.
    found = secrets.found_in(texts_of(path))
    print_table({"control": found})
    assert {place: len(names) for place, names in found.items()} == dict.fromkeys(PLACES, 60)
