"""Looks a home over: settings, rights, disk, database, index, logs, jobs, skills, channels; each with its remedy."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agent.cerebellum import Cerebellum
from agent.providers.base import ProviderSettings, create
from channels.registry import CHANNELS
from gateway.config import Settings, SettingsError, load_settings
from gateway.home import CONFIG
from gateway.limits import DISK_BYTES_LOW, DISK_BYTES_MIN
from gateway.readlog import parse_line
from gateway.store import StoreError
from gateway.store.inspecting import index_facts, index_faults
from gateway.store.snapshot import check_database
from heartbeat.jobs import HeartbeatFile

DATABASE, INDEX = "hudhud.db", "index.db"
_LINES_NAMED_MAX = 5

State = Literal["good", "warning", "fault"]

_CHANNEL_STATES: Mapping[str, State] = {"connected": "good", "starting": "warning", "degraded": "warning"}


@dataclass(frozen=True, slots=True)
class Finding:
    """What one look came to. A `warning` can wait, a `fault` keeps something from working. `mend` puts it right."""

    area: str
    state: State
    what: str
    remedy: str = ""
    mend: Callable[[], None] | None = None

    def as_json(self) -> dict[str, Any]:
        return {"area": self.area, "state": self.state, "what": self.what, "remedy": self.remedy}


def examine(home: Path, running: Mapping[str, Any] | None) -> Iterator[Finding]:
    """Looks a home over, thing by thing. `running` is what /api/status of its gateway says; None: none runs."""
    try:
        settings = load_settings(home / CONFIG)
    except SettingsError as error:
        settings = None
        for sentence in str(error).splitlines():
            yield Finding("settings", "fault", sentence, "Correct that line.")
    else:
        yield Finding("settings", "good", f"{home / CONFIG} is sound")
    yield from _rights(home)
    yield _disk(home)
    database = _database(home)
    yield database
    if database.state == "good":
        yield _index(home)
    yield from _read_logs(home / "workspace" / "readlog")
    yield from _jobs(home / "workspace" / "heartbeat.md")
    yield from _skills(home / "workspace")
    if settings is not None:
        yield from _model(settings)
    yield from _gateway(running)


def _rights(home: Path) -> Iterator[Finding]:
    """What only the owner should read."""
    names = (CONFIG, DATABASE, f"{DATABASE}-wal", *(name for name in CHANNELS if (home / name).is_dir()))
    loose = 0
    for path in (home, *(home / name for name in names)):
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
        except FileNotFoundError:
            continue
        # What lies in a closed folder is closed; the folder itself and the settings are not left to that.
        if mode & 0o077 and (path in {home, home / CONFIG} or stat.S_IMODE(home.stat().st_mode) & 0o077):
            loose += 1
            yield Finding(
                "rights",
                "fault" if path.name == CONFIG else "warning",
                f"{path} can be read by others on this machine (mode {mode:04o})",
                f"chmod go= {path}",
                lambda path=path, mode=mode: path.chmod(mode & 0o700),
            )
        if not os.access(path, os.W_OK):
            loose += 1
            yield Finding("rights", "fault", f"{path} cannot be written", "Check its owner and rights.")
    if not loose:
        yield Finding("rights", "good", "the home is the owner's alone")


def _disk(home: Path) -> Finding:
    free = shutil.disk_usage(home).free
    shown = f"{free / 1_000_000_000:.1f} GB free"
    if free < DISK_BYTES_MIN:
        return Finding("disk", "fault", f"only {shown}", "Make room: without it no message can be accepted.")
    if free < DISK_BYTES_LOW:
        return Finding("disk", "warning", f"only {shown}", "Make room before messages cannot be saved.")
    return Finding("disk", "good", shown)


def _database(home: Path) -> Finding:
    path = home / DATABASE
    if not path.exists():
        return Finding("database", "good", "there is none yet; the first start makes it")
    try:
        check_database(path)
    except StoreError as error:
        return Finding("database", "fault", str(error), "Move it away and restore a backup: `hudhud restore`.")
    return Finding("database", "good", f"{path.name} is whole ({path.stat().st_size / 1_000_000:.1f} MB)")


def _index(home: Path) -> Finding:
    database, index = home / DATABASE, home / INDEX
    try:
        faults = index_faults(database, index, whole=True)
        facts = index_facts(database, index)
    except StoreError as error:
        return Finding("index", "warning", str(error), "Look again in a moment.")
    if faults:
        return Finding("index", "warning", "; ".join(faults), "The next start builds it, or `hudhud index rebuild`.")
    if (facts.watermark or 0) < facts.newest:
        return Finding("index", "warning", "it lacks what came last", "A start, or `hudhud index update`, adds it.")
    return Finding("index", "good", f"{sum(facts.records.values()):,} records, {facts.files:,} files")


def _read_logs(folder: Path) -> Iterator[Finding]:
    """Lines that are no JSON object. The last one of a log may just be being written."""
    files = bad = 0
    for path in sorted(folder.glob("*/*.jsonl")):
        files += 1
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.endswith(b"\n") and parse_line(line) is None:
                    bad += 1
                    if bad <= _LINES_NAMED_MAX:
                        what = f"{path}, line {number} is no message"
                        yield Finding(
                            "read logs", "warning", what, "Readers pass it over; delete the line if you like."
                        )
    if bad > _LINES_NAMED_MAX:
        yield Finding("read logs", "warning", f"{bad - _LINES_NAMED_MAX} more lines are no message")
    if not bad:
        yield Finding("read logs", "good", f"{_counted(files, 'log')}, every line sound")


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _jobs(path: Path) -> Iterator[Finding]:
    found = HeartbeatFile(path).load()
    for fault in found.faults:
        yield Finding("clock", "fault", f"{path.name}, {fault}", "Correct the job; the others run.")
    if not found.faults:
        yield Finding("clock", "good", f"{_counted(len(found.jobs), 'job')} in {path.name}, all sound")


def _skills(workspace: Path) -> Iterator[Finding]:
    capabilities = Cerebellum({}, (workspace / "skills",), workspace=workspace).capabilities()
    faults = [one for one in capabilities if one.fault is not None]
    for one in faults:
        yield Finding("skills", "fault", f"{one.name}: {one.fault}", "Mend its SKILL.md; the others work.")
    if not faults:
        yield Finding("skills", "good", f"{len(capabilities)} of your own, all sound")


def _model(settings: Settings) -> Iterator[Finding]:
    model = settings.model
    made = create(ProviderSettings(model.provider, model.name, model.base_url))
    if not (made.local or model.base_url or model.api_key.get_secret_value()):
        yield Finding("model", "fault", f"{made.name} has no key", 'Set api_key = "env:NAME" under [model].')
    else:
        yield Finding("model", "good", " ".join(dict.fromkeys(filter(None, (made.name, made.model)))))


def _gateway(running: Mapping[str, Any] | None) -> Iterator[Finding]:
    if running is None:
        yield Finding("gateway", "warning", "it does not run", "Start it with `hudhud run`.")
        return
    yield Finding("gateway", "good", f"version {running['version']} runs")
    for channel in running["channels"]:
        if not channel["enabled"]:
            continue
        what = f"{channel['channel']} is {channel['state'].replace('_', ' ')}"
        detail = f"{what}: {channel['detail']}" if channel["detail"] else what
        state = _CHANNEL_STATES.get(channel["state"], "fault")
        yield Finding("channels", state, detail, channel["remedy"] or "")
