"""The public interface. A change here changes it for users, and belongs in the changelog."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import daskscope
import daskscope.analytics


def test_the_public_names_of_the_package() -> None:
    assert daskscope.__all__ == [
        "DaskscopeError",
        "MemorySampler",
        "Recording",
        "__version__",
        "compare",
        "list_performance_reports",
        "log_metric",
        "open_recording",
        "performance_report",
        "profile",
        "record",
        "watch",
        "what_if",
    ]


def test_the_public_names_of_analytics() -> None:
    assert daskscope.analytics.__all__ == [
        "close",
        "create_api_token",
        "dask_setup",
        "explain",
        "list_api_tokens",
        "list_clusters",
        "list_computations",
        "list_errors",
        "list_events",
        "list_exceptions",
        "register",
        "revoke_api_token",
        "sql",
        "tasks",
        "unregister",
    ]


def test_every_public_name_exists_and_is_documented() -> None:
    for module in (daskscope, daskscope.analytics):
        for name in module.__all__:
            value = getattr(module, name)
            assert isinstance(value, str) or inspect.getdoc(value), name


def test_every_public_name_is_on_the_api_page() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "reference" / "python-api.md").read_text()
    for module in (daskscope, daskscope.analytics):
        listed = re.search(rf"^::: {module.__name__}\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL)
        assert listed is not None
        names = re.findall(r"^        - (\w+)$", listed[1], re.MULTILINE)
        assert sorted(names) == [name for name in module.__all__ if name != "__version__"]


def test_the_arguments_of_the_public_functions() -> None:
    def names(function: object) -> list[str]:
        assert callable(function)
        return list(inspect.signature(function).parameters)

    assert names(daskscope.record) == ["path", "client", "name", "switches"]
    assert names(daskscope.open_recording) == ["path"]
    assert str(inspect.signature(daskscope.performance_report)).startswith(
        "(filename: 'str | Path' = 'dask-report.html', private: 'bool' = False, account: 'str | None' = None, *, client:"
    )
    assert names(daskscope.performance_report)[3:] == ["client", "upload", "tags", "storage_options", "stacklevel"]
    assert names(daskscope.MemorySampler.sample) == ["self", "label", "client", "measure", "interval"]
    assert names(daskscope.log_metric) == ["name", "value", "unit", "client", "span", "window", "labels"]
    assert names(daskscope.analytics.register) == ["client", "account"]
    assert names(daskscope.analytics.unregister) == ["client"]
    assert str(inspect.signature(daskscope.list_performance_reports)) == "(account: 'str | None' = None) -> 'Listing'"
    assert defaults(daskscope.analytics.list_clusters) == {
        "account": None,
        "since": "7 days",
        "user": None,
        "state": None,
    }
    assert defaults(daskscope.analytics.list_computations) == {
        "cluster_id": None,
        "scheduler_id": None,
        "account": None,
    }
    assert names(daskscope.analytics.list_events) == ["cluster_id", "account"]
    assert defaults(daskscope.analytics.list_exceptions) == {
        "account": None,
        "since": "7 days",
        "user": None,
        "cluster_id": None,
        "scheduler_id": None,
    }
    assert names(daskscope.analytics.close) == ["cluster_id", "account"]
    assert names(daskscope.analytics.create_api_token) == ["label", "days_to_expire", "scopes", "account"]
    assert defaults(daskscope.analytics.list_api_tokens) == {"include_inactive": False, "account": None}
    assert names(daskscope.analytics.revoke_api_token) == ["identifier", "label", "account"]


def defaults(function: object) -> dict[str, object]:
    assert callable(function)
    return {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}
