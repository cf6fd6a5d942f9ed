"""What users may rely on. A change here is a change of the public interface, and belongs into the changelog."""

from __future__ import annotations

import inspect

import daskscope
import daskscope.analytics


def test_the_names_of_the_package() -> None:
    assert daskscope.__all__ == [
        "DaskscopeError",
        "MemorySampler",
        "Recording",
        "__version__",
        "log_metric",
        "open_recording",
        "performance_report",
        "profile",
        "record",
    ]


def test_the_names_of_analytics() -> None:
    assert daskscope.analytics.__all__ == ["dask_setup", "register", "unregister"]


def test_every_public_name_is_there_and_documented() -> None:
    for module in (daskscope, daskscope.analytics):
        for name in module.__all__:
            value = getattr(module, name)
            assert isinstance(value, str) or inspect.getdoc(value), name


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
    assert names(daskscope.analytics.register) == ["client"]
    assert names(daskscope.analytics.unregister) == ["client"]
