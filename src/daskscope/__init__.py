"""The flight recorder for Dask."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from daskscope.client.analyse import compare, profile, what_if
    from daskscope.client.memory_sampler import MemorySampler
    from daskscope.client.performance_report import performance_report
    from daskscope.client.record import log_metric, open_recording, record
    from daskscope.client.server import list_performance_reports
    from daskscope.errors import DaskscopeError
    from daskscope.live_page import watch
    from daskscope.model.recording import Recording

__version__ = "0.1.0"
__all__ = [
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

#: The module of each name. They are imported when they are used: processes of a server need none of them, and ``distributed`` takes
#: 0.5 s and 40 MB.
_MODULES = {
    "DaskscopeError": "daskscope.errors",
    "MemorySampler": "daskscope.client.memory_sampler",
    "Recording": "daskscope.model.recording",
    "compare": "daskscope.client.analyse",
    "list_performance_reports": "daskscope.client.server",
    "log_metric": "daskscope.client.record",
    "open_recording": "daskscope.client.record",
    "performance_report": "daskscope.client.performance_report",
    "profile": "daskscope.client.analyse",
    "record": "daskscope.client.record",
    "watch": "daskscope.live_page",
    "what_if": "daskscope.client.analyse",
}

if not TYPE_CHECKING:

    def __getattr__(name):  # noqa: ANN001, ANN202 (type checkers see the imports above, and would accept any name here)
        if name == "analytics":
            # So that ``import daskscope`` is enough to register a cluster.
            return import_module("daskscope.analytics")
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_MODULES[name]), name)
        return value

    def __dir__():  # noqa: ANN202
        return sorted({*globals(), *__all__})


def load_ipython_extension(shell: object) -> None:
    """Add the cell magic ``%%daskscope``, which records a cell; called by ``%load_ext daskscope``."""
    from daskscope.client.notebook import load

    load(shell)
