"""Options that several commands take, and the home they work on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import typer

if TYPE_CHECKING:
    from gateway.client import Client
    from gateway.config import Settings

Home = Annotated[
    str | None, typer.Option("--home", metavar="DIR", help="Home folder; else $HUDHUD_HOME, else ~/.hudhud.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
After = Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="Only from this day on.")]
Before = Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="Only up to this day, itself included.")]


def given(**values: Any) -> dict[str, Any]:
    """A tool's arguments: the options that were given, by the names of its parameters."""
    return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Place:
    """A home folder with its settings."""

    home: Path
    settings: Settings

    @property
    def zone(self) -> ZoneInfo:
        return self.settings.zone

    def client(self) -> Client | None:
        """The line to the gateway that runs on this home; None when none does."""
        from gateway.client import Client
        from gateway.home import read_running

        facts = read_running(self.home)
        return None if facts is None else Client(facts["address"], facts["token"])

    def needed_client(self) -> Client:
        """The same; raises CliError (exit code 4) when no gateway runs."""
        from gateway.cli_errors import not_reachable, not_running
        from gateway.home import is_held

        client = self.client()
        if client is None:
            raise not_reachable(self.home) if is_held(self.home) else not_running(self.home)
        return client


def place(home: str | None) -> Place:
    """The home that the options and the environment name. Raises SettingsError for a bad config.toml."""
    from gateway.config import home_folder, load_settings
    from gateway.home import CONFIG

    folder = home_folder(home)
    return Place(folder, load_settings(folder / CONFIG))
