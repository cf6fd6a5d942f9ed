"""Cut arguments and data out of messages that quote them: representations of calls and tasks, and Dask's serialization errors.

coffea quotes the chunk that failed. Its dataset and its range of events stay, because they say which chunk it was.
"""

from __future__ import annotations

import re

from .aliases import PLAIN, Aliases

#: Objects whose representation contains the arguments of a call.
_START = re.compile(
    r"(?P<call>\b(?:_?WorkItem|FileMeta|(?:functools\.)?partial|DataNode|SubgraphCallable|Serialize|ToPickle|Serialized)\()"
    r"|(?P<task><(?:Task|Handle|TimerHandle|Future|_GatheringFuture|WorkItem|_WorkItem) )"
    r"|(?P<data>Could not (?:de)?serialize object of type [\w.]{1,200})"
)
#: A bracket, or a quoted text, in which brackets do not count.
_TOKEN = re.compile(r"""[()]|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*\"""")
#: The beginning of coffea's ``WorkItem`` and ``FileMeta``.
_CHUNK = re.compile(
    r"dataset='(?P<dataset>[^'\n]{1,200})', (?:filename=(?:'[^'\n]{0,2000}'|\"[^\"\n]{0,2000}\"), treename='[^'\n]{0,200}', )?"
    r"(?P<range>entrystart=\d{1,18}, entrystop=\d{1,18})"
)
_FILE = re.compile(r"(?P<dataset>[^:()'\n]{1,200}):[^\n]")
CUT = "…"


def without_arguments(text: str, aliases: Aliases = PLAIN) -> str:
    """Return the text without arguments and data. Takes linear time: it never returns to a part it has read."""
    kept: list[str] = []
    done = 0
    while found := _START.search(text, done):
        kept += (text[done : found.end()], _chunk(text, found.end(), aliases), CUT)
        if found["call"]:
            done = _closing_bracket(text, found.end())
        else:
            # To the last closing bracket of the line, because the arguments may contain any; to its end if the text was cut off.
            line_end = text.find("\n", found.end())
            line_end = len(text) if line_end < 0 else line_end
            last = text.rfind(">", found.end(), line_end) if found["task"] else -1
            done = last if last >= 0 and text[last - 1] in ")]>" else line_end
    return "".join(kept) + text[done:] if kept else text


def _chunk(text: str, start: int, aliases: Aliases) -> str:
    """Return the dataset and the range of events of a chunk that begins here; empty if none does."""
    if text.endswith("WorkItem(", 0, start) and (found := _CHUNK.match(text, start)):
        return f"dataset='{aliases.key(found['dataset'])}', {found['range']}, "
    if text.endswith("FileMeta(", 0, start) and (found := _FILE.match(text, start)):
        return f"{aliases.key(found['dataset'])}:"
    return ""


def _closing_bracket(text: str, start: int) -> int:
    """Return the position of the bracket that closes a call; the end of the text if it was cut off."""
    depth = 1
    for found in _TOKEN.finditer(text, start):
        if found[0] in "()":
            depth += 1 if found[0] == "(" else -1
        if not depth:
            return found.start()
    return len(text)
