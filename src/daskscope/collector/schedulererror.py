"""Exceptions made by the scheduler itself (KilledWorker, NoValidWorkerError), which come pickled and without a text."""

from __future__ import annotations

import io
import pickle
from typing import Any


def exception_text(payload: Any) -> str:
    """Type and message of an exception that the scheduler made and pickled."""
    if isinstance(payload, (bytes, bytearray)):
        try:
            error = _Exceptions(io.BytesIO(payload)).load()
            return f"{type(error).__name__}: {error}"
        except Exception:  # noqa: BLE001 (whatever it is, the scheduler did not make it)
            return "Exception: of a kind that is not read here"
    return f"{type(payload).__name__}('reported by the scheduler without a text')"


class _Exceptions(pickle.Unpickler):
    """Loads exceptions made by the scheduler, and nothing a worker could have put in their place."""

    #: What a WorkerState, named by KilledWorker, is made of; and how distributed has exceptions pickled: the function makes
    #: an instance of the class it is given, which is looked up here as well.
    HARMLESS = frozenset(
        (
            ("builtins", "int"),
            ("builtins", "float"),
            ("builtins", "set"),
            ("collections", "deque"),
            ("collections", "defaultdict"),
            ("collections", "OrderedDict"),
            ("distributed.scheduler", "WorkerState"),
            ("distributed.core", "Status"),
            ("tblib.pickling_support", "unpickle_exception"),
            ("tblib.pickling_support", "unpickle_exception_with_attrs"),
        )
    )

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name) if module.partition(".")[0] in ("distributed", "builtins") else None
        if isinstance(found, type) and issubclass(found, Exception):
            return found
        if (module, name) in self.HARMLESS:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is not an exception")
