"""Remove secrets from every text before it leaves the process."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from .aliases import PLAIN, Aliases, without_token
from .rows import Columns
from .secret_patterns import RULES, Rule

MASK = "***"

#: Shorter values also occur in ordinary text by chance.
MIN_SECRET = 6

#: Every known secret is searched for in every text.
MAX_SECRETS = 1_000

#: Values that are never secrets, even if their name suggests one.
_COMMON = frozenset(
    ("true", "false", "none", "null", "default", "disabled", "enabled", "unknown", "localhost", "required", "optional")
)

_SECRET_NAME = re.compile(
    r"token|secret|passw|passphrase|pwd|credential|api[-_.]?key|access[-_.]?key|account[-_.]?key|private|cookie|dsn"
    r"|connection[-_.]?string|(?:^|[-_.])auth(?:$|[-_.]|orization)|(?:^|[-_.])key$|signature|(?:^|[-_.])sas(?:$|[-_.])",
    re.IGNORECASE,
)

#: These sound like passwords but are paths, which occur in every traceback.
_WORKING_DIRECTORY = frozenset(("PWD", "OLDPWD"))

#: Short texts repeat: names of groups, prefixes and functions. Up to this length, and this many, their result is remembered.
MAX_REMEMBERED_LENGTH = 200
MAX_REMEMBERED = 10_000

_HINTS = [(hint, rule) for rule in RULES for hint in rule.hints]

#: Types of cells that are or contain text; all cells of a column have one of them, or none has.
_TEXTS = (str, list, tuple)


class Scrubber:
    """Replaces known secrets, and text that looks like one, by ``***``."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        values = {value for value in secrets if _is_secret(value)}
        # A secret in a URL may be quoted.
        values |= {quote(value, safe="") for value in values}
        # Sorted by length, so that a secret is masked whole even if another secret is its beginning.
        self._known = sorted(values, key=len, reverse=True)[:MAX_SECRETS]
        self._remembered: dict[str, str] = {}

    @classmethod
    def gather(cls, environ: Mapping[str, str], dask_config: Mapping[str, Any]) -> Scrubber:
        """Return a scrubber of all values whose name, in the environment or in Dask's configuration, suggests a secret."""
        pairs = [*environ.items(), *_leaves(dask_config)]
        return cls(value for name, value in pairs if _SECRET_NAME.search(name) and name not in _WORKING_DIRECTORY)

    def scrub(self, text: str) -> str:
        """Return the text with every secret masked."""
        for secret in self._known:
            if secret in text:
                text = text.replace(secret, MASK)
        for rule in self._rules(text):
            text = rule.regex.sub(_masked, text)
        return text

    def is_clean(self, text: str) -> bool:
        """Return whether a text certainly contains no secret; much faster than scrubbing it."""
        return not any(secret in text for secret in self._known) and not self._rules(text)

    def scrub_name(self, text: str) -> str:
        """Return a text that probably repeats, with every secret masked."""
        found = self._remembered.get(text)
        if found is None:
            found = self.scrub(text)
            if len(text) <= MAX_REMEMBERED_LENGTH:
                if len(self._remembered) >= MAX_REMEMBERED:
                    self._remembered.clear()
                self._remembered[text] = found
        return found

    def scrub_value(self, name: str, value: str) -> str:
        """Return the value of a field; it is masked if the field's name suggests a secret."""
        scrubbed, field = self.scrub(value), f"{name}={value}"
        return MASK if scrubbed == value and self.scrub(field) != field else scrubbed

    def scrub_json(self, text: str) -> str:
        """Return a JSON object with every secret masked; any other text like ``scrub_name``."""
        if not text.startswith("{"):
            return self.scrub_name(text)
        if self.is_clean(text):
            return text
        try:
            return json.dumps(self._scrub_tree(json.loads(text)))
        except (ValueError, RecursionError):
            return self.scrub(text)

    def scrub_columns(self, columns: Columns) -> Columns:
        """Return the rows of a table with every secret masked."""
        return {
            name: list(map(self._scrub_cell, values)) if values and type(values[0]) in _TEXTS else values
            for name, values in columns.items()
        }

    def _scrub_cell(self, value: Any) -> Any:
        if type(value) is str:
            return self.scrub_json(value)
        if type(value) in _TEXTS:
            return [self.scrub_name(item) if type(item) is str else item for item in value]
        return value

    def _scrub_tree(self, tree: Any) -> Any:
        if isinstance(tree, dict):
            return {
                self.scrub(name): self.scrub_value(name, value) if isinstance(value, str) else self._scrub_tree(value)
                for name, value in tree.items()
            }
        if isinstance(tree, list):
            return [self._scrub_tree(item) for item in tree]
        return self.scrub(tree) if isinstance(tree, str) else tree

    def _rules(self, text: str) -> list[Rule]:
        """Return the rules that may match the text."""
        lower = text.lower()
        # A flat list: a loop over rules with a loop over their hints takes ten times as long.
        return list({rule: None for hint, rule in _HINTS if hint in lower})


def bounded(text: str, limit: int) -> str:
    """Cut a text to ``limit`` characters: its head and tail, and between them the number of characters cut."""
    if len(text) <= limit:
        return text
    marker = f"\n... {len(text)} characters cut ...\n"
    room = max(limit - len(marker), 0)
    head, tail = room - room // 2, room // 2
    marker = f"\n... {len(text) - head - tail} characters cut ...\n"
    return (text[:head] + marker + (text[-tail:] if tail else ""))[: max(limit, 0)]


def _masked(found: re.Match[str]) -> str:
    group = found.lastgroup
    if group is None:
        return found[0]
    start, stop = (position - found.start() for position in found.span(group))
    return found[0][:start] + MASK + found[0][stop:]


def _is_secret(value: str) -> bool:
    return len(value) >= MIN_SECRET and value.strip().lower() not in _COMMON and not value.isspace()


def _leaves(config: Mapping[str, Any], path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield every text in a nested configuration with its dotted name; elements of a list have the list's name."""
    if depth > 20:  # a configuration that contains itself
        return
    for name, value in config.items():
        here = f"{path}.{name}" if path else str(name)
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, Mapping):
                yield from _leaves(item, here, depth + 1)
            elif isinstance(item, (str, bytes)):
                yield here, item if isinstance(item, str) else item.decode("utf-8", "replace")


# Secrets in the keys of a batch of executions are masked. Most keys cost only a look.
#
# Scrubbing a key takes 10 to 20 µs, as much as everything else that happens to a task. Two shortcuts avoid it: most batches
# contain no hint of a secret at all, and keys of one function differ in a token only, so one of them is scrubbed for all.
# Batches of keys that Dask named, which is most of them, are looked at as a whole: 0.3 µs a key instead of 1.


def scrub_keys(scrubber: Scrubber, keys: Sequence[Any]) -> list[Any]:
    """Return the keys; those with a secret as text in which it is masked."""
    named, others = _named_by_dask(keys)
    if _with_secret(scrubber, named):
        others = list(keys)
    examples: dict[str, str] = {}
    starts: dict[Any, str] = {}
    for key in others:
        text = _relevant_text(key)
        starts[key] = start = without_token(text) or text
        examples.setdefault(start, text)
    secretive = _with_secret(scrubber, examples)
    if not secretive:
        return list(keys)
    return [scrubber.scrub(str(key)) if starts.get(key) in secretive else key for key in keys]


def _with_secret(scrubber: Scrubber, examples: dict[str, str]) -> set[str]:
    """Return the beginnings of keys with a secret; ``examples`` has a key for each beginning."""
    # A token begins with a hyphen, which a hint may need.
    if scrubber.is_clean("-\n".join(examples) + "-"):
        return set()
    return {start for start, text in examples.items() if scrubber.scrub(text) != text}


def _relevant_text(key: Any) -> str:
    if type(key) is str:
        return key
    if type(key) is tuple and key and type(key[0]) is str and all(type(part) is int for part in key[1:]):
        return key[0]
    return str(key)


#: Characters of Dask's tokens, and how many a token has.
_HEX, _TOKEN_LENGTH = "0123456789abcdef", 32


def _named_by_dask(keys: Sequence[Any]) -> tuple[dict[str, str], list[Any]]:
    """Return the beginnings of keys that Dask named, without their tokens and numbers, with an example each, and all other keys.

    Keys are checked together. If one text is different, all texts are among the others; the same holds for tuples.
    """
    texts = [key for key in keys if type(key) is str]
    tuples = [key for key in keys if type(key) is tuple]
    examples: dict[str, str] = {}
    others = [] if len(texts) + len(tuples) == len(keys) else [key for key in keys if type(key) not in (str, tuple)]
    if tuples:
        # The names of collections end with a token, too, but repeat.
        names = {key[:1] for key in tuples}
        parts = {type(part) for key in tuples for part in key[1:]}
        if parts <= {int} and {tuple(map(type, name)) for name in names} == {(str,)}:
            examples.update((without_token(name) or name, name) for (name,) in names)
        else:
            others += tuples
    if texts:
        starts, _, tokens = zip(*[key.rpartition("-") for key in texts])
        # Checked for all of them at once: strip removes every character of a token.
        if set(map(len, tokens)) == {_TOKEN_LENGTH} and not "".join(tokens).strip(_HEX):
            examples.update(zip(starts, texts))
        else:
            others += texts
    return examples, others


# Some messages quote arguments and data: representations of calls and tasks, and Dask's serialization errors. They are cut out.
#
# coffea quotes the chunk that failed. Its dataset and its range of events stay, because they say which chunk it was.

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
