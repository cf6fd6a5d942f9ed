"""Mask secrets in the keys of a batch of executions, at the cost of a look at most keys.

Scrubbing a key takes 10 to 20 µs, as much as everything else that happens to a task. Two shortcuts avoid it: most batches contain
no hint of a secret at all, and keys of one function differ in a token only, so one of them is scrubbed for all. Batches of keys
that Dask named, which is most of them, are looked at as a whole: 0.3 µs a key instead of 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .aliases import without_token
from .privacy import Scrubber


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
_HEX, _TOKEN = "0123456789abcdef", 32


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
        if set(map(len, tokens)) == {_TOKEN} and not "".join(tokens).strip(_HEX):
            examples.update(zip(starts, texts))
        else:
            others += texts
    return examples, others
