"""Dask's configuration is turned into the collector's settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dask.config
import pytest

from daskscope.client.config import DEFAULTS, option, settings
from daskscope.collector.settings import NO_TEXT, Settings
from daskscope.errors import DaskscopeError


def test_the_defaults_record_everything_but_users_logs_files_and_child_processes() -> None:
    found = settings()
    assert found.recorded_text() == {**dict.fromkeys(NO_TEXT, True), "user_logs": False, "files": False}
    assert (found.edges, found.transfers, found.chunks, found.children) == (True, True, True, False)


def text_of(found: Settings) -> dict[str, Any]:
    return {name: getattr(found, name) for name in (*NO_TEXT, "name", "user")}


def test_private_switches_off_every_class_of_text() -> None:
    nothing = {**NO_TEXT, "name": "", "user": ""}
    assert text_of(settings(private=True, name="Ann's", code=True, logs="all", topics=("print",))) == nothing
    with dask.config.set({"daskscope.analytics.private": True}):
        assert text_of(settings(name="Ann's")) == nothing
        assert settings(private=False).code


@pytest.mark.parametrize(
    ("value", "loggers"),
    [(True, "dask"), ("dask", "dask"), ("All", "all"), (False, ""), (None, ""), ("False", ""), ("none", "")],
)
def test_logs_selects_loggers(value: Any, loggers: str) -> None:
    assert settings(logs=value).logs == loggers
    with dask.config.set({"daskscope.analytics.logs": value}):
        assert settings().logs == loggers


def test_an_unknown_selection_of_loggers_is_refused() -> None:
    with pytest.raises(DaskscopeError, match="Choose 'dask', 'all' or False"):
        settings(logs="mine")


def test_dasks_configuration_is_used() -> None:
    with dask.config.set(
        {"daskscope.analytics.profile.transmit": False, "daskscope.analytics.samples.interval": "500ms"}
    ):
        found = settings()
    assert (found.profile, found.sample_interval) == (False, 0.5)


def test_switches_override_the_configuration() -> None:
    with dask.config.set({"daskscope.analytics.edges": False}):
        assert settings(edges=True).edges is True


def test_an_unknown_switch_is_refused_with_a_list_of_switches() -> None:
    with pytest.raises(DaskscopeError, match=r"Unknown switch 'profle'.*profile"):
        settings(profle=False)


FLOOR = "daskscope.analytics.profile.floor"


@pytest.mark.parametrize(("value", "seconds"), [("10ms", 0.01), ("50ms", 0.05), (1, 1.0), (None, 0.01)])
def test_stacks_are_sampled_no_more_often_than_configured(value: Any, seconds: float) -> None:
    with dask.config.set({FLOOR: value}):
        assert settings().profile_floor == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("2ms", "is '2ms', shorter than 10 ms. Set '10ms' or longer."),
        (0, "is 0, shorter than 10 ms. Set '10ms' or longer."),
        ("seldom", "is 'seldom', which is not a duration. Set one such as '20ms'."),
    ],
)
def test_a_sampling_interval_below_the_minimum_is_refused(value: Any, problem: str) -> None:
    with dask.config.set({FLOOR: value}), pytest.raises(DaskscopeError) as refused:
        settings()
    assert str(refused.value) == f"{FLOOR} {problem}"


def test_tokens_are_not_read_from_dasks_configuration() -> None:
    with dask.config.set({"daskscope.token": "secret-token"}):
        assert "secret-token" not in str(settings())


def leaves(tree: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{above}{name}.")
        else:
            yield above + name, value


def test_every_setting_has_its_default_after_the_configuration_was_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    before = settings()
    monkeypatch.setattr(dask.config, "config", {})

    assert settings() == before
    assert {key: option(key) for key, _ in leaves(DEFAULTS)} == dict(leaves(DEFAULTS))
