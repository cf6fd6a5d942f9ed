"""Cut arguments and data out of messages that quote them: representations of calls and tasks, and Dask's serialization errors."""

from __future__ import annotations

import re

#: Objects whose representation contains the arguments of a call.
_START = re.compile(
    r"(?P<call>\b(?:_?WorkItem|(?:functools\.)?partial|DataNode|SubgraphCallable|Serialize|ToPickle|Serialized)\()"
    r"|(?P<task><(?:Task|Handle|TimerHandle|Future|_GatheringFuture|WorkItem|_WorkItem) )"
    r"|(?P<data>Could not (?:de)?serialize object of type [\w.]{1,200})"
)
#: A bracket, or a quoted text, in which brackets do not count.
_TOKEN = re.compile(r"""[()]|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*\"""")
CUT = "…"


def without_arguments(text: str) -> str:
    """Return the text without arguments and data. Takes linear time: it never returns to a part it has read."""
    kept: list[str] = []
    done = 0
    while found := _START.search(text, done):
        kept += (text[done : found.end()], CUT)
        if found["call"]:
            done = _closing_bracket(text, found.end())
        else:
            # To the last closing bracket of the line, because the arguments may contain any; to its end if the text was cut off.
            line_end = text.find("\n", found.end())
            line_end = len(text) if line_end < 0 else line_end
            last = text.rfind(">", found.end(), line_end) if found["task"] else -1
            done = last if last >= 0 and text[last - 1] in ")]>" else line_end
    return "".join(kept) + text[done:] if kept else text


def _closing_bracket(text: str, start: int) -> int:
    """Return the position of the bracket that closes a call; the end of the text if it was cut off."""
    depth = 1
    for found in _TOKEN.finditer(text, start):
        if found[0] in "()":
            depth += 1 if found[0] == "(" else -1
        if not depth:
            return found.start()
    return len(text)
