"""Any logged event becomes a small row of plain JSON, or no row."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from daskscope.collector.aliases import Aliases
from daskscope.collector.privacy import Scrubber
from daskscope.collector.scheduler.events import DETAIL_LIMIT, UNREADABLE, event_row

SCRUBBER = Scrubber(["hunter2hunter2"])


class Hostile:
    """Raises on any access."""

    def _no(self, *args: Any) -> Any:
        raise RuntimeError("do not look")

    __str__ = __repr__ = __len__ = __iter__ = __bool__ = __getitem__ = __hash__ = __eq__ = _no


class HostileDict(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("no items")


class HostileClass:
    @property
    def __class__(self) -> Any:
        raise RuntimeError("no class")

    @__class__.setter
    def __class__(self, value: Any) -> None: ...


def recursive() -> dict[str, Any]:
    inner: dict[str, Any] = {"action": "loop"}
    inner["self"] = inner
    inner["list"] = [inner, [inner, [inner, [inner]]]]
    return inner


def row(message: Any, topic: Any = "all", *, keys: bool = True, exception_text: bool = True) -> dict[str, Any]:
    found = event_row(topic, message, SCRUBBER, aliases=Aliases(keys=keys), exception_text=exception_text)
    assert found is not None
    return found


def test_an_event_of_dask() -> None:
    found = row({"action": "worker-status-change", "worker": "tcp://a", "status": "paused", "n": 3})
    assert (found["topic"], found["kind"], found["worker"]) == ("all", "worker-status-change", "tcp://a")
    assert json.loads(found["detail"]) == {"status": "paused", "n": 3}


@pytest.mark.parametrize("kind", ["add-client", "remove-client", "run-function", "get-data"])
def test_ignored_events_are_not_kept(kind: str) -> None:
    assert event_row("all", {"action": kind}, SCRUBBER) is None


def test_a_message_that_is_not_a_dict_is_kept_under_its_topic() -> None:
    found = row("hello", topic="mine")
    assert (found["kind"], json.loads(found["detail"])) == ("mine", {"message": "hello"})


@pytest.mark.parametrize(
    "message",
    [
        Hostile(),
        {"action": Hostile()},
        {"action": "x", "worker": Hostile(), "value": Hostile()},
        {Hostile: 1, None: 2, (1, 2): 3},
        HostileDict(action="x"),
        {"nested": HostileDict(a=1)},
        recursive(),
        pickle.dumps({"a": "b" * 10_000}),
        {"payload": pickle.dumps("secret" * 1000), "view": memoryview(b"abc"), "array": bytearray(9)},
        {"keys": {f"inc-{number}" for number in range(100_000)}},
        {f"name-{number}": number for number in range(100_000)},
        {"text": "x" * 5_000_000},
        {"x" * 5_000_000: 1},
        {"number": 10**10_000, "nan": float("nan"), "infinity": float("inf"), "complex": 1j},
        {"surrogate": "\ud800", "null": "\x00"},
        [[[[[[[[]]]]]]]],
        None,
        float("nan"),
        object(),
        {"deep": {"er": {"and": {"deeper": {"still": 1}}}}},
    ],
    ids=lambda message: type(message).__name__,
)
def test_anything_becomes_a_small_row(message: Any) -> None:
    found = row(message)
    assert len(found["detail"]) <= DETAIL_LIMIT
    assert isinstance(json.loads(found["detail"], parse_constant=pytest.fail), dict)
    assert all(type(value) is str for value in found.values())


def test_an_object_that_hides_its_class() -> None:
    # Not a parameter above, because pytest cannot make a test ID of it.
    assert UNREADABLE in row(HostileClass())["detail"]
    assert UNREADABLE in row({"value": HostileClass()})["detail"]


@pytest.mark.parametrize("topic", [Hostile(), None, 5, ("a", "b"), "t" * 10_000])
def test_any_topic(topic: Any) -> None:
    assert len(row({"action": "x"}, topic=topic)["topic"]) <= 100


def test_bytes_are_never_kept() -> None:
    found = row({"payload": pickle.dumps("mark-4711")})
    assert "mark-4711" not in found["detail"]
    assert "bytes>" in found["detail"]


def test_large_collections_become_their_size_and_a_few_members() -> None:
    detail = json.loads(row({"keys": [f"inc-{number}" for number in range(1000)]})["detail"])
    assert detail["keys"] == {"count": 1000, "first": ["inc-0", "inc-1", "inc-2", "inc-3", "inc-4"]}


def test_secrets_are_masked_in_names_and_values() -> None:
    found = row({"action": "x", "text": "it is hunter2hunter2", "hunter2hunter2": 1, "list": ["hunter2hunter2"]})
    assert "hunter2" not in json.dumps(found)


def test_without_keys_no_member_of_a_collection_is_kept() -> None:
    message = {"action": "remove-worker", "lost-computed-tasks": {"inc-mark"}, "key": "inc-mark", "d": {"inc-mark": 1}}
    message |= {"why": "inc-mark failed", "story": "of 'another-mark'"}
    found = row(message, keys=False)
    assert "mark" not in found["detail"]
    assert json.loads(found["detail"])["lost-computed-tasks"] == {"count": 1}


def test_without_exception_text_no_exception_is_quoted() -> None:
    message = {
        "action": "worker-fail-hard",
        "exception": "E('mark')",
        "exception_text": "mark",
        "traceback": "mark",
        "traceback_text": "mark",
        "pid": 3,
    }
    assert json.loads(row(message, exception_text=False)["detail"]) == {"pid": 3}
    assert "mark" in row(message)["detail"]


def test_a_field_whose_name_sounds_secret_is_masked() -> None:
    found = row({"action": "x", "password": "open sesame", "nested": {"api_key": "abc"}, "key": "inc-1", "token": 5})
    assert json.loads(found["detail"]) == {
        "password": "***",
        "nested": {"api_key": "***"},
        "key": "inc-1",
        "token": 5,
    }
