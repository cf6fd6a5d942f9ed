"""The flight recorder for Dask."""

from daskscope.client.compare import compare
from daskscope.client.memory_sampler import MemorySampler
from daskscope.client.metric import log_metric
from daskscope.client.performance_report import performance_report
from daskscope.client.profile import profile
from daskscope.client.record import open_recording, record
from daskscope.client.reports import list_performance_reports
from daskscope.client.what_if import what_if
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


def load_ipython_extension(shell: object) -> None:
    """Add the cell magic ``%%daskscope``, which records a cell; called by ``%load_ext daskscope``."""
    from daskscope.notebook import load

    load(shell)
