"""Exceptions that daskscope raises on purpose.

::

    DaskscopeError            the user can act on it; the message says how
    ├── RecordingError        a recording cannot be read or written
    │   ├── NotARecording     the file is something else
    │   ├── NewerFormat       written by a newer daskscope
    │   └── WireError         not a valid frame (damaged, cut off, or hostile)
    ├── NoClient              there is no Dask client to record
    ├── ClusterError          the cluster cannot be observed
    ├── ServerError           a daskscope server cannot be reached, or refuses the request
    └── MissingExtra          an optional package is not installed

Any other exception is a bug in daskscope and is not caught.
"""

from __future__ import annotations


class DaskscopeError(Exception):
    """Base class of all errors a user can act on; ``exit_code`` is the exit status of the command line."""

    exit_code = 1


class RecordingError(DaskscopeError):
    """A recording cannot be read or written."""


class NotARecording(RecordingError):
    """The file is not a daskscope recording."""


class NewerFormat(RecordingError):
    """The file was written by a newer daskscope."""


class WireError(RecordingError):
    """The bytes are not a valid frame."""


class NoClient(DaskscopeError):
    """There is no Dask client to record."""


class ClusterError(DaskscopeError):
    """The cluster cannot be observed."""


class ServerError(DaskscopeError):
    """A daskscope server cannot be reached, or refuses the request.

    ``status`` is 0 if it did not answer, ``code`` is empty if the response is not one of daskscope's API.
    """

    def __init__(self, message: str, status: int = 0, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class MissingExtra(DaskscopeError):
    """An optional package is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}. Install it with: pip install 'daskscope[{extra}]'")
