"""Every exception daskscope raises on purpose.

::

    DaskscopeError            a user can do something about it; the text says what
    ├── RecordingError        a recording cannot be read or written
    │   ├── NotARecording     the file is something else
    │   ├── NewerFormat       written by a newer daskscope
    │   └── WireError         bytes that are no valid frame (damaged, cut off, or hostile)
    ├── NoClient              there is no Dask client to record
    ├── ClusterError          the cluster cannot be observed
    ├── ServerError           a daskscope server cannot be reached, or refuses
    └── MissingExtra          an optional package is not installed

Anything else that escapes is a bug of ours and is left loud.
"""

from __future__ import annotations


class DaskscopeError(Exception):
    """Base of all errors a user can act on; ``exit_code`` is what the command line returns."""

    exit_code = 1


class RecordingError(DaskscopeError):
    """A recording cannot be read or written."""


class NotARecording(RecordingError):
    """The file is not a daskscope recording."""


class NewerFormat(RecordingError):
    """The file was written by a newer daskscope."""


class WireError(RecordingError):
    """Bytes that are no valid frame."""


class NoClient(DaskscopeError):
    """There is no Dask client to record."""


class ClusterError(DaskscopeError):
    """The cluster cannot be observed."""


class ServerError(DaskscopeError):
    """A daskscope server cannot be reached, or refuses; ``status`` is 0 where it did not answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class MissingExtra(DaskscopeError):
    """An optional package is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}. Install it with: pip install 'daskscope[{extra}]'")
