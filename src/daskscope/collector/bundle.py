"""Ship the collector's own source to machines where daskscope is not installed.

The bundle is text, not pickled code: code objects pickled by value load on another Python minor version and crash the
interpreter at the first call. A pickle that references nothing but ``builtins.eval`` carries the source of this package, of the
encoding half of ``wire`` and of the table definitions, compressed to about 100 KB. At the destination they become modules of a
private package named after their hash, so that two versions do not conflict.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import pkgutil
import re
import sys
import zlib
from importlib.util import find_spec
from typing import Any

from distributed.diagnostics.plugin import SchedulerPlugin

NAME = "daskscope"
_ROOT = __name__.rsplit(".", 2)[0]

#: A line that is only a comment, and a docstring of one line.
_COMMENT = re.compile(r"^[ \t]*#[^\n]*$", re.MULTILINE)
_DOCSTRING = re.compile(r'''^([ \t]*)"""[^"\\\n]*"""$''', re.MULTILINE)

#: Runs at the destination. ``load`` returns a module of the bundle; ``make_plugin`` and ``make_function`` return the plugin or the
#: function, or a stand-in that reports why it cannot run. Compiling the bundle takes 60 ms, so it never happens on an event loop:
#: ``Shipped`` stands in for the plugin until then. ``refuse`` replies to the first request with the reason, and removes everything.
LOADER = r"""
import asyncio, importlib, importlib.abc, importlib.util, inspect, json, linecache, sys, zlib
from distributed.diagnostics.plugin import SchedulerPlugin


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, root, sources):
        self.root, self.sources = root, sources

    def find_spec(self, name, path=None, target=None):
        if name != self.root and not name.startswith(self.root + "."):
            return None
        key = name[len(self.root) + 1:]
        if key not in self.sources:
            return None
        package = not key or any(other.startswith(key + ".") for other in self.sources)
        return importlib.util.spec_from_loader(name, self, origin="daskscope/" + key, is_package=package)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        source = self.sources[module.__name__[len(self.root) + 1:]]
        file = "<" + module.__name__ + ">"
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
        exec(compile(source, file, "exec"), module.__dict__)


def load(root, payload, name):
    if not any(getattr(finder, "root", None) == root for finder in sys.meta_path):
        sys.meta_path.append(Finder(root, json.loads(zlib.decompress(payload))))
    module = importlib.import_module(root)
    module.__payload__ = payload
    return importlib.import_module(root + "." + name)


class Shipped(SchedulerPlugin):
    name, idempotent = "daskscope", True

    def __init__(self, root, payload, argument):
        self.root, self.payload, self.argument = root, payload, argument

    async def start(self, scheduler):
        if self.is_recorded(scheduler):
            return
        try:
            loop = asyncio.get_running_loop()
            module = await loop.run_in_executor(None, load, self.root, self.payload, "collector.scheduler.plugin")
            plugin = module.create(self.argument)
            await plugin.start(scheduler)
            if plugin.scheduler is not None:
                loop.call_soon(plugin.take_over, scheduler)
            elif not self.is_recorded(scheduler):  # otherwise another client's recorder was faster
                raise RuntimeError(plugin.problem)
        except Exception as error:
            self.refuse(scheduler, repr(error))

    def is_recorded(self, scheduler):
        handler = scheduler.handlers.get("daskscope")
        return handler is not None and not getattr(handler, "is_farewell", False)

    def refuse(self, scheduler, why):
        def refused(**_):
            scheduler.handlers.pop("daskscope", None)
            scheduler.plugins.pop("daskscope", None)
            return {"status": "refused", "why": why}

        scheduler.handlers["daskscope"] = refused


def make_plugin(root, payload, argument):
    return Shipped(root, payload, argument)


def make_function(root, payload, argument):
    async def daskscope(dask_worker=None, **kwargs):
        try:
            module, _, name = argument.partition(":")
            module = await asyncio.get_running_loop().run_in_executor(None, load, root, payload, module)
            result = getattr(module, name)(dask_worker=dask_worker, **kwargs)
            return await result if inspect.isawaitable(result) else result
        except Exception as error:
            return "refused: " + repr(error)

    return daskscope
"""


def payload() -> bytes:
    """Return the compressed sources of the installed package, or of the bundle this module itself was shipped with."""
    root = sys.modules[_ROOT]
    shipped = getattr(root, "__payload__", None)
    if shipped is None:
        shipped = zlib.compress(json.dumps(sources()).encode(), 9)
        root.__payload__ = shipped  # type: ignore[attr-defined]
    return bytes(shipped)


def sources() -> dict[str, str]:
    """Return the source of every module to ship, by its name below the root package."""
    collector = importlib.import_module(_ROOT + ".collector")
    names = [
        "model",
        "model.libraries",
        "model.states",
        "model.columns",
        "model.tables",
        "wire",
        "wire.layout",
        "wire.encode",
        "wire.encode_keys",
        "collector",
    ]
    below = pkgutil.walk_packages(collector.__path__, f"{_ROOT}.collector.")
    names += [item.name.removeprefix(f"{_ROOT}.") for item in below]
    return {"": '"""daskscope, shipped as source."""\n', **{name: _source(f"{_ROOT}.{name}") for name in names}}


def _source(module: str) -> str:
    spec = find_spec(module)
    loader: Any = spec.loader if spec is not None else None
    source = loader.get_source(module) if loader is not None else None
    if source is None:
        raise RuntimeError(f"Cannot ship {module} to the cluster: its source is not available.")
    # Blank lines instead of comments, and empty docstrings, which are a fifth of the bundle; line numbers stay.
    return _DOCSTRING.sub(r'\1""', _COMMENT.sub("", str(source)))


def private_root(data: bytes) -> str:
    """Return the package name of the bundle at its destination."""
    return f"_daskscope_{hashlib.sha256(data).hexdigest()[:12]}"


def reduce_to(maker: str, argument: Any) -> tuple[Any, ...]:
    """Return the result of ``__reduce__`` for a shipped object; unpickling looks up only ``builtins.eval`` by name."""
    data = payload()
    scope = {"loader": LOADER, "root": private_root(data), "payload": data, "argument": argument}
    return eval, (f"exec(loader) or {maker}(root, payload, argument)", scope)


class ShippedPlugin(SchedulerPlugin):
    """Pickles to the scheduler plugin, built from source at the destination."""

    name = NAME
    idempotent = True

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings

    def __reduce__(self) -> tuple[Any, ...]:
        return reduce_to("make_plugin", self.settings)


class ShippedFunction:
    """Pickles to a function of the bundle, named ``module:function``."""

    def __init__(self, function: str) -> None:
        self.function = function

    def __reduce__(self) -> tuple[Any, ...]:
        return reduce_to("make_function", self.function)

    def __call__(self) -> None:
        raise TypeError("A shipped function can only be called at its destination.")


class PresentFunction(ShippedFunction):
    """Pickles, in 300 bytes, to a function of a bundle that was shipped before; without the bundle, to a no-op."""

    def __reduce__(self) -> tuple[Any, ...]:
        module, _, name = self.function.partition(":")
        scope = {"module": f"{private_root(payload())}.{module}", "name": name}
        return eval, (
            "getattr(__import__('sys').modules.get(module), name, lambda dask_worker=None, **_: 'absent')",
            scope,
        )
