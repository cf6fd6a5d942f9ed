"""Tell the story of a run in plain words, and why a cluster is still running."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from daskscope import analytics
from daskscope.analysis.summary import extent
from daskscope.cli.output import Output, open_output, write_json
from daskscope.cli.terminal import HELP, escape
from daskscope.client.analyse import find_recording
from daskscope.client.server import download_recording
from daskscope.insights.facts import Facts
from daskscope.insights.story import Story, tell
from daskscope.model.recording import Recording


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_name", metavar="RUN", help=HELP)
    parser.add_argument("--account", metavar="NAME", help="account of a cluster ID (default: your own)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    name: str = args.run_name
    state: dict[str, Any] | None = None
    if Path(name).exists() or name.startswith(("http://", "https://")):
        story = story_of(find_recording(name))
    else:
        state = analytics.explain(name, args.account)
        story = story_of(download_recording(name, args.account))
    if args.json:
        write_json({**(state or {}), "story": story.to_dict()})
        return 0
    output = open_output()
    if state is not None:
        _show_state(output, state)
    _show_story(output, story)
    return 0


def story_of(recording: Recording) -> Story:
    """Return the story of a recording."""
    return tell(Facts.of(recording, *extent(recording)))


def _show_state(output: Output, state: dict[str, Any]) -> None:
    output.line(escape(state["answer"]), style="bold")
    for line in state["evidence"]:
        output.line(f"  {escape(line)}")
    for line in state["advice"]:
        output.line(f"→ {escape(line)}")


def _show_story(output: Output, story: Story) -> None:
    for part in story.paragraphs:
        output.heading(part.heading)
        for sentence in part.sentences:
            output.line(escape(sentence))
