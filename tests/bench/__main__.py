"""Speed figures: `python -m tests.bench [NAME ...]` prints a JSON list with one object for each figure.

Wall times of a shared machine are upper bounds; compare `value` and `bare` of one run. `--install` adds the size of an
installation, which is slow and needs the package index.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from tests.bench import (
    accepting,
    asking,
    backlog,
    classifying,
    clocking,
    files_bench,
    index_bench,
    installing,
    rebuilding,
    recall,
    reflecting,
    search_bench,
    starting,
    streaming,
    turns,
)

Bench = Callable[[bool], list[dict[str, Any]]]
"""Takes whether it is only to show that it works; gives its figures."""


def _accept(tiny: bool) -> list[dict[str, Any]]:
    return asyncio.run(accepting.run(4, 64) if tiny else accepting.run(300, 6_400))


def _turn(tiny: bool) -> list[dict[str, Any]]:
    return asyncio.run(turns.one_by_one(50, 1, 0.0) if tiny else turns.one_by_one(100_000, 200))


def _chats(tiny: bool) -> list[dict[str, Any]]:
    return asyncio.run(turns.side_by_side(2, 2) if tiny else turns.side_by_side(32, 25))


def _start(tiny: bool) -> list[dict[str, Any]]:
    return asyncio.run(starting.run(1, 0, 0) if tiny else starting.run(5, 3))


def _request(tiny: bool) -> list[dict[str, Any]]:
    return asyncio.run(asking.run())


def _index(tiny: bool) -> list[dict[str, Any]]:
    return index_bench.figures(200 if tiny else index_bench.MESSAGES)


def _files(tiny: bool) -> list[dict[str, Any]]:
    return asyncio.run(files_bench.run(20, 80, 1, 1) if tiny else files_bench.run(5_000, 20_000, 2_000, 15))


def _find(tiny: bool) -> list[dict[str, Any]]:
    return search_bench.figures({6_000: 300} if tiny else search_bench.SIZES)


def _recall(tiny: bool) -> list[dict[str, Any]]:
    figures = asyncio.run(recall.run(every=50 if tiny else 1))
    if figures:
        sys.stderr.write(recall.table(figures) + "\n")
    return figures


def _rebuild(tiny: bool) -> list[dict[str, Any]]:
    return rebuilding.figures(200, 10) if tiny else rebuilding.figures()


def _backlog(tiny: bool) -> list[dict[str, Any]]:
    return asyncio.run(backlog.run(40, 3, 100) if tiny else backlog.run(1_000, 20, 100_000))


def _clock(tiny: bool) -> list[dict[str, Any]]:
    return asyncio.run(clocking.run(20, 0.1, 2) if tiny else clocking.run(1_000, 30, 50))


def _classify(tiny: bool) -> list[dict[str, Any]]:
    return classifying.run(1 if tiny else classifying.TIMES)


def _reflect(tiny: bool) -> list[dict[str, Any]]:
    return reflecting.run(6, 40, 5) if tiny else reflecting.run()


def _stream(tiny: bool) -> list[dict[str, Any]]:
    return streaming.figures(20_000 if tiny else 1_000_000)


BENCHES: dict[str, Bench] = {
    "accept": _accept,
    "turn": _turn,
    "chats": _chats,
    "start": _start,
    "request": _request,
    "index": _index,
    "files": _files,
    "find": _find,
    "recall": _recall,
    "rebuild": _rebuild,
    "backlog": _backlog,
    "classify": _classify,
    "reflect": _reflect,
    "clock": _clock,
    "stream": _stream,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benches that are named, all of them when none is."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHES)}; all when none is named")
    parser.add_argument("--install", action="store_true", help="install the core anew and measure it too")
    parser.add_argument("--long", action="store_true", help="search an index of 1,000,000 messages too (minutes)")
    parser.add_argument("--tiny", action="store_true", help="only show that it works: the figures mean nothing")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(BENCHES):
        parser.error(f"no bench is called {', '.join(sorted(unknown))}; there are {', '.join(BENCHES)}")
    figures: list[dict[str, Any]] = []
    for name in options.names or BENCHES:
        begun = time.perf_counter()
        figures += BENCHES[name](options.tiny)
        sys.stderr.write(f"{name}: {time.perf_counter() - begun:.0f} s\n")
    if options.long:
        figures += search_bench.figures(search_bench.LONG)
    if options.install:
        figures += installing.run()
    print(json.dumps(figures, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
