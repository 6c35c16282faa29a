"""What a home must hold after a journey: every promise about messages, turns, deliveries, logs and index, checked.

All checks read files only: the two databases, the read logs, the knowledge files. What people saw is handed in.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.journeys.echo_model import answer_to, calls_wanted, fact, names

Json = dict[str, Any]


@dataclass(slots=True)
class Journey:
    """What was sent and what came back. Messages are named `m<chat>-<number>`.

    `keys`: of each message sent, its `dedupe_key` in the database. `shown`: the replies that reached each chat
    (`m<chat>`), in their order, with the platform's ids. `may_be_unknown`: the way to the chat is one that can break.
    """

    channel: str
    keys: Mapping[str, str]
    shown: Mapping[str, Sequence[tuple[str, str]]]
    may_be_unknown: bool


@dataclass(slots=True)
class Verdict:
    """Figures, and one sentence for each broken promise."""

    figures: dict[str, int] = field(default_factory=dict[str, int])
    broken: list[str] = field(default_factory=list[str])

    def check(self, holds: bool, sentence: str) -> None:
        if not holds:
            self.broken.append(sentence)


def saved_keys(home: Path, channel: str, scratch: Path) -> set[str]:
    """The `dedupe_key`s in the database of a killed gateway, read from a copy: recovery is left to the next start."""
    scratch.mkdir(exist_ok=True)
    for suffix in ("", "-wal"):
        source, copy = home / f"hudhud.db{suffix}", scratch / f"hudhud.db{suffix}"
        copy.unlink(missing_ok=True)
        if source.exists():
            copy.write_bytes(source.read_bytes())
    (scratch / "hudhud.db-shm").unlink(missing_ok=True)
    with closing(sqlite3.connect(scratch / "hudhud.db")) as database:
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'message'").fetchone():
            return set()
        rows = database.execute("SELECT dedupe_key FROM message WHERE channel = ?", (channel,)).fetchall()
    return {key for (key,) in rows if key is not None}


def is_quiet(home: Path, expected: int) -> bool:
    """Whether every message is saved and answered, and no reply is on its way. The gateway may be running."""
    with closing(sqlite3.connect(f"file:{home / 'hudhud.db'}?mode=ro", uri=True, timeout=10)) as database:
        saved = database.execute("SELECT count(*) FROM message WHERE dedupe_key IS NOT NULL").fetchone()[0]
        open_ = database.execute(
            "SELECT (SELECT count(*) FROM message WHERE state IN ('waiting', 'running'))"
            " + (SELECT count(*) FROM delivery WHERE state IN ('planned', 'sending', 'retry'))"
        ).fetchone()[0]
    return saved >= expected and not open_


def judge(home: Path, journey: Journey) -> Verdict:
    """Checks a home whose gateway has ended."""
    verdict = Verdict()
    with closing(sqlite3.connect(home / "hudhud.db")) as database:
        database.row_factory = sqlite3.Row
        _check_messages(database, journey, verdict)
        turns = _check_turns(database, journey, verdict)
        _check_shown(turns, journey, verdict)
        _check_read_logs(database, home, journey, verdict)
        _check_calls(database, home, verdict)
        _check_index(database, home, verdict)
    return verdict


def _check_messages(database: sqlite3.Connection, journey: Journey, verdict: Verdict) -> None:
    """Each message that was sent has one row, in its chat's order, and was answered."""
    rows = database.execute("SELECT * FROM message WHERE role = 'user' ORDER BY seq").fetchall()
    found = Counter(name for row in rows for name in names(row["text"]))
    lost = [name for name in journey.keys if not found[name]]
    twice = [name for name, count in found.items() if count > 1]
    saved = {row["dedupe_key"] for row in rows}
    verdict.figures |= {"lost": len(lost), "duplicates": len(twice)}
    verdict.check(not lost, f"lost: {_some(lost)}")
    verdict.check(not twice, f"saved twice: {_some(twice)}")
    verdict.check(set(journey.keys.values()) == saved, "the keys in the database are not those of what was sent")
    disorder = _out_of_order(name for row in rows for name in names(row["text"]))
    verdict.figures["out_of_order"] = len(disorder)
    verdict.check(not disorder, f"saved out of order: {_some(disorder)}")
    failed = [row["text"] for row in rows if row["state"] == "failed"]
    verdict.figures["given_up"] = len(failed)
    other = Counter(row["state"] for row in rows if row["state"] != "answered")
    verdict.check(not other, f"messages that are not answered: {dict(other)}, such as {_some(failed)}")


@dataclass(frozen=True, slots=True)
class _Turn:
    """An answered turn: its messages, its reply, its delivery."""

    asked: tuple[str, ...]
    reply: str
    state: str
    sent_ids: tuple[str, ...]


def _check_turns(database: sqlite3.Connection, journey: Journey, verdict: Verdict) -> list[_Turn]:
    """Each message belongs to one turn that ended well; its reply names exactly its messages; one delivery each."""
    asked: dict[str, list[str]] = defaultdict(list)
    for turn_id, text in database.execute("SELECT turn_id, text FROM message WHERE role = 'user' ORDER BY seq"):
        asked[turn_id] += names(text)
    turns: list[_Turn] = []
    rows = database.execute(
        "SELECT turn.id, turn.state AS turn_state, turn.attempts, message.text, delivery.key, delivery.state,"
        " delivery.sent_ids FROM turn LEFT JOIN message ON message.seq = turn.reply_seq"
        " LEFT JOIN delivery ON delivery.message_seq = message.seq"
        " ORDER BY message.seq"
    ).fetchall()
    for row in rows:
        mine = asked.pop(row["id"], [])
        if not mine and row["text"] is None:
            # It broke off before anything was recorded, and its messages were taken up by another one.
            continue
        where = f"turn {row['id']} about {_some(mine)}"
        verdict.check(row["turn_state"] == "done", f"{where} is {row['turn_state']}")
        verdict.check(bool(mine), f"{where} answers nothing: {str(row['text'])[:80]}")
        if row["turn_state"] == "done":
            verdict.check(row["text"] == answer_to(mine), f"{where} was answered: {str(row['text'])[:80]}")
        verdict.check(row["key"] == f"reply:{row['id']}", f"{where} has the delivery {row['key']}")
        turns.append(_Turn(tuple(mine), row["text"], row["state"], tuple(json.loads(row["sent_ids"] or "[]"))))
    verdict.check(not asked, f"messages without a turn: {_some(name for mine in asked.values() for name in mine)}")
    keys = Counter(row["key"] for row in rows if row["key"] is not None)
    deliveries = database.execute("SELECT count(*) FROM delivery").fetchone()[0]
    verdict.check(max(keys.values(), default=1) == 1 and deliveries == len(keys), "a turn has several deliveries")
    states = Counter(turn.state for turn in turns)
    allowed = {"sent", "unknown"} if journey.may_be_unknown else {"sent"}
    verdict.check(set(states) <= allowed, f"deliveries in other states: {dict(states)}")
    verdict.figures |= {
        "turns": len(turns),
        "turns_taken_up_again": sum(row["attempts"] > 1 for row in rows),
        "attempts_max": max((row["attempts"] for row in rows), default=0),
        "shared_replies": sum(len(turn.asked) > 1 for turn in turns),
        "sent_deliveries": states["sent"],
        "unknown_deliveries": states["unknown"],
    }
    return turns


def _check_shown(turns: Sequence[_Turn], journey: Journey, verdict: Verdict) -> None:
    """What reached the chats: each reply that is `sent` once and whole, each `unknown` one at most once, no other."""
    shown = [(chat, id_, text) for chat, texts in journey.shown.items() for id_, text in texts]
    texts = Counter((chat, text) for chat, _, text in shown)
    twice = [text[:60] for (_, text), count in texts.items() if count > 1]
    verdict.figures["duplicate_sends"] = len(twice)
    verdict.check(not twice, f"sent twice: {_some(twice)}")
    arrived = {name for _, _, text in shown for name in names(text)}
    disorder = [
        name for texts in journey.shown.values() for name in _out_of_order(n for _, t in texts for n in names(t))
    ]
    verdict.figures["out_of_order"] += len(disorder)
    verdict.check(not disorder, f"answered out of order: {_some(disorder)}")
    ids = {(chat, id_): text for chat, id_, text in shown}
    known: set[tuple[str, str]] = set()
    maybe: dict[str, str] = defaultdict(str)
    for turn in (turn for turn in turns if turn.asked):
        mine = [(_chat(turn.asked[0]), id_) for id_ in turn.sent_ids]
        known.update(mine)
        if turn.state == "unknown":
            maybe[_chat(turn.asked[0])] += _without_blanks(turn.reply)
        elif turn.state == "sent":
            whole = "".join(_without_blanks(ids.get(key, "")) for key in mine)
            verdict.check(whole == _without_blanks(turn.reply), f"the answer to {_some(turn.asked)} did not come whole")
    stray = [text[:60] for key, text in ids.items() if key not in known and _without_blanks(text) not in maybe[key[0]]]
    verdict.check(not stray, f"sent, and no delivery says so: {_some(stray)}")
    unknown_names = {name for turn in turns if turn.state == "unknown" for name in turn.asked}
    verdict.figures["unknown_that_arrived"] = sum(
        turn.state == "unknown" and set(turn.asked) <= arrived for turn in turns if turn.asked
    )
    missing = set(journey.keys) - arrived - unknown_names
    verdict.check(not missing, f"no answer was seen to: {_some(sorted(missing))}")


def _check_read_logs(database: sqlite3.Connection, home: Path, journey: Journey, verdict: Verdict) -> None:
    """The files against the database, line by line; each message once, and what was sent too."""
    expected: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    rows = database.execute(
        "SELECT log_entry.chat, message.message_id, message.text, delivery.sent_ids FROM log_entry"
        " JOIN message ON message.seq = log_entry.message_seq"
        " LEFT JOIN delivery ON delivery.key = log_entry.delivery_key"
        " WHERE log_entry.channel = ? ORDER BY log_entry.seq",
        (journey.channel,),
    )
    for row in rows:
        heard = row["sent_ids"] is None
        id_ = row["message_id"] if heard else json.loads(row["sent_ids"])[0]
        expected[row["chat"]].append(("in" if heard else "out", id_, row["text"]))
    files = {path.stem: path for path in (home / "workspace" / "readlog" / journey.channel).glob("*.jsonl")}
    verdict.check(set(files) == set(expected), f"read logs of other chats: {_some(set(files) ^ set(expected))}")
    lines = 0
    heard_names: Counter[str] = Counter()
    for chat, path in files.items():
        found: list[tuple[str, str, str]] = []
        for number, raw in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                line = json.loads(raw)
                found.append((line["dir"], line["id"], line["text"]))
            except (ValueError, KeyError):
                verdict.check(False, f"{path.name} line {number} is no line of a read log: {raw[:80]}")
        verdict.check(
            found == expected[chat], f"{path.name} is not what the database says: {_first(found, expected[chat])}"
        )
        heard_names.update(name for dir_, _, text in found if dir_ == "in" for name in names(text))
        lines += len(found)
    verdict.figures["readlog_lines"] = lines
    verdict.check(heard_names == Counter(journey.keys.keys()), "not every message is in its read log once")
    delivered = database.execute("SELECT count(*) FROM delivery WHERE state = 'sent'").fetchone()[0]
    verdict.check(lines == len(journey.keys) + delivered, f"{lines} lines in the read logs")


def _check_calls(database: sqlite3.Connection, home: Path, verdict: Verdict) -> None:
    """A call that ran is recorded and not run again: each is there once, and a fact that was kept stands once."""
    rows = database.execute("SELECT args, outcome FROM tool_call WHERE name = 'memory_save'").fetchall()
    outcomes: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        outcomes[json.loads(row["args"])["fact"]].append(row["outcome"])
    verdict.figures |= {
        "calls": len(rows),
        "interrupted_calls": sum(row["outcome"] == "interrupted" for row in rows),
    }
    for note, found in outcomes.items():
        verdict.check(len(found) == 1, f"called {len(found)} times: {note}")
        verdict.check(set(found) <= {"success", "interrupted"}, f"{note}: {found}")
    folder = home / "workspace" / "brain" / "hippocampus" / "knowledge"
    kept = Counter(
        line.removeprefix("- ").strip()
        for path in folder.glob("*.md")
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("- ")
    )
    for note, found in outcomes.items():
        wanted = {1} if found == ["success"] else {0, 1}
        verdict.check(kept[note] in wanted, f"{note}: {found}, and it stands there {kept[note]} times")
    wanted_calls = _facts_wanted(database)
    verdict.check(
        set(outcomes) == wanted_calls, f"calls nobody made or that are missing: {_some(set(outcomes) ^ wanted_calls)}"
    )


def _facts_wanted(database: sqlite3.Connection) -> set[str]:
    """The facts that the answered turns of the owner must have kept."""
    asked: dict[str, list[str]] = defaultdict(list)
    rows = database.execute(
        "SELECT turn_id, text FROM message WHERE role = 'user' AND rights = 'owner' AND state = 'answered' ORDER BY seq"
    )
    for turn_id, text in rows:
        asked[turn_id] += names(text)
    return {fact(mine[0], n) for mine in asked.values() for n in range(1, calls_wanted(mine) + 1)}


def _check_index(database: sqlite3.Connection, home: Path, verdict: Verdict) -> None:
    """The index has seen everything, holds each message once, and finds it by its own word."""
    messages = database.execute(
        "SELECT 'conversation:' || conversation_id AS owner, n, text, role FROM message"
        " WHERE n IS NOT NULL AND text != ''"
    ).fetchall()
    newest = database.execute("SELECT max(version) FROM message").fetchone()[0]
    with closing(sqlite3.connect(home / "index.db")) as index:
        watermark = index.execute("SELECT value FROM meta WHERE key = 'watermark'").fetchone()[0]
        verdict.check(watermark == newest, f"the index has seen {watermark} of {newest}")
        records = Counter(
            index.execute("SELECT owner, n, body FROM record WHERE source = 'conversation' AND part = 0").fetchall()
        )
        expected = Counter((row["owner"], row["n"], row["text"]) for row in messages)
        verdict.check(
            records == expected,
            f"the index is not what the database says: {_some((records - expected) + (expected - records))}",
        )
        missed: list[str] = []
        for row in messages:
            if row["role"] == "user":
                found = index.execute(
                    "SELECT owner, n FROM words JOIN record ON record.id = words.rowid"
                    " WHERE words MATCH ? AND record.role = 'user'",
                    (f"text : {own_word(names(row['text'])[0])}",),
                ).fetchall()
                if found != [(row["owner"], row["n"])]:
                    missed.append(row["text"])
    verdict.figures["index_records"] = sum(records.values())
    verdict.check(not missed, f"not found once by their own word: {_some(missed)}")


def own_word(name: str) -> str:
    """A word that stands in this message alone."""
    return "w" + "".join("qzxjvkwbfg"[int(digit)] if digit.isdigit() else "y" for digit in name[1:]) + "h"


def _chat(name: str) -> str:
    return name.partition("-")[0]


def _without_blanks(text: str) -> str:
    return "".join(text.split())


def _out_of_order(found: Iterable[str]) -> list[str]:
    """The messages that do not come after all earlier ones of their chat."""
    last: dict[str, int] = defaultdict(int)
    wrong: list[str] = []
    for name in found:
        chat, _, number = name.partition("-")
        if int(number) <= last[chat]:
            wrong.append(name)
        last[chat] = max(last[chat], int(number))
    return wrong


def _first(found: Sequence[object], expected: Sequence[object]) -> str:
    """The first line that differs."""
    for number in range(max(len(found), len(expected))):
        pair = [str(lines[number])[:120] if number < len(lines) else "nothing" for lines in (found, expected)]
        if pair[0] != pair[1]:
            return f"line {number + 1} has {pair[0]}, expected {pair[1]}"
    return f"{len(found)} lines"


def _some(items: Iterable[object]) -> str:
    listed = [str(item)[:120] for item in items]
    return ", ".join(listed[:5]) + (f" and {len(listed) - 5} more" if len(listed) > 5 else "")
