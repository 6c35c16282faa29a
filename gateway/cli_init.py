"""`hudhud init`: a few questions, then config.toml and the workspace. Overwrites nothing."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gateway.cli_errors import failed
from gateway.cli_output import complain, print_json, remark, say
from gateway.config import Settings, machine_zone
from gateway.home import CONFIG, FIRST_CONFIG, prepare

HEAD = "\n".join(FIRST_CONFIG.splitlines()[:2])
Sections = dict[str, dict[str, str | bool]]
SERVERS = {
    "anthropic": ("https://api.anthropic.com", "env:ANTHROPIC_API_KEY"),
    "openai": ("https://api.openai.com/v1", "env:OPENAI_API_KEY"),
    "deepseek": ("https://api.deepseek.com", "env:DEEPSEEK_API_KEY"),
    "ollama": ("http://127.0.0.1:11434", ""),
}
"""What Enter takes: where a service lives, and its key."""


def init(home: Path, *, ask: bool, as_json: bool) -> None:
    """Makes the home, or what of it is missing. Raises HomeError, and CliError when the questions break off."""
    is_new = not (home / CONFIG).exists()
    prepare(home, config=_asked() if ask and is_new else FIRST_CONFIG)
    if as_json:
        print_json({"home": str(home), "created": is_new})
    elif is_new:
        say(f"{home} is ready: settings in config.toml, everything else to read and edit in workspace/.")
        remark("`hudhud run` starts the gateway.")
    else:
        say(f"{home / CONFIG} is there already and stays as it is.")


def _asked() -> str:
    """The text of config.toml after the answers."""
    remark("Enter takes what stands in brackets.")
    try:
        sections: list[Sections] = [
            {"agent": {"timezone": _question("Time zone", machine_zone(), check=_zone)}},
            _model(),
            _telegram(),
        ]
    except (EOFError, KeyboardInterrupt):
        complain()
        remedy = "`hudhud init --yes` takes the defaults without asking."
        raise failed("aborted", "The questions were not answered, so nothing was written.", remedy) from None
    text = f"{HEAD}\n" + "".join(_toml(name, values) for section in sections for name, values in section.items())
    Settings.model_validate(tomllib.loads(text))
    return text


def _model() -> Sections:
    remark("The offline model answers from memory, without key or network; openai is any server with that protocol.")
    provider = _question(f"Model (offline, {', '.join(SERVERS)})", "offline", check=_provider)
    if provider == "offline":
        return {}
    default_server, default_key = SERVERS[provider]
    server = _question("Address of the server", default_server, check=_address)
    return {
        "model": {
            "provider": provider,
            "name": _question("Name of the model"),
            "base_url": "" if server == default_server else server,
            "api_key": _question("Key, or env:NAME to read it from a variable", default_key, secret=True),
        }
    }


def _telegram() -> Sections:
    token = _question("Telegram bot token from @BotFather, or env:NAME (empty: no Telegram)", "", secret=True)
    if not token:
        return {}
    owner = _question("Your own Telegram id, a number", check=_number)
    return {"channels.telegram": {"enabled": True, "token": token, "owner": owner}}


def _question(
    text: str, default: str | None = None, *, check: Callable[[str], str] | None = None, secret: bool = False
) -> str:
    """Asks until the answer will do. `check` returns what is wrong with one, or nothing. A secret is not shown."""
    prompt = f"{text} [{default}]: " if default else f"{text}: "
    while True:
        if secret and sys.stdin.isatty():
            from getpass import getpass

            answer = getpass(prompt).strip()
        else:
            answer = input(prompt).strip()
        answer = answer or (default or "")
        wrong = check(answer) if check is not None else ""
        if not answer and default is None:
            wrong = "An answer is needed here."
        if not wrong:
            return answer
        complain(wrong)


def _zone(answer: str) -> str:
    try:
        ZoneInfo(answer)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return f"There is no time zone {answer}; write for example Asia/Riyadh."
    return ""


def _provider(answer: str) -> str:
    return "" if answer in {"offline", *SERVERS} else f"Write offline, {', '.join(SERVERS)}."


def _address(answer: str) -> str:
    return "" if answer.startswith(("http://", "https://")) else "An address begins with http:// or https://."


def _number(answer: str) -> str:
    return "" if answer.isascii() and answer.isdigit() else "The id is a number; @userinfobot on Telegram tells it."


def _toml(name: str, values: dict[str, str | bool]) -> str:
    """One table. JSON strings are TOML strings."""
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items() if value != ""]
    return "\n".join(["", f"[{name}]", *lines, ""])
