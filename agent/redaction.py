"""Masks secrets in text that is shown or sent on. What is stored stays as it is.

Known forms of keys come from detect-secrets (its plugins' patterns, loaded with the first text that may hold one) and
from the rules here; passwords are found by the word before them. Nothing is guessed from randomness alone: commit ids,
UUIDs, pictures as base64 and phone numbers stay readable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, cast

from agent.limits import SECRET_CHARS_MIN, SECRET_WORD_CHARS_MAX

MARK = "[redacted:"
"""How each mask begins; a text that holds it is no text to save again."""

_HINT = re.compile(
    r"[A-Za-z0-9_+/=.-]{16}|://|-----"
    r"|[Pp](?:ass|wd|in\b)|PASS|PIN\b|[Pp]wd|PWD|secret|Secret|SECRET"
    r"|[Tt]oken|TOKEN|[Kk]ey|KEY|[Mm]ot de|contrase|[Kk]ennwort|[Ss]enha|[Пп]ароль"
    r"|[Ww]achtwoord|WACHTWOORD|[Pp]arola|PAROLA|[Şş]ifre|ŞİFRE|mysql|mariadb|curl"
    r"|سر|سري|مرور|باس|رمز|مفتاح|密码|密碼|口令|パスワード|비밀번호"
)
"""A text without any of these holds nothing to mask: most texts end here."""

_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----END)[\s\S]){0,20000}"
    r"(?:-----END [A-Z0-9 ]{1,60}-----)?"
)
_KEY_REST = re.compile(
    r"(?:[A-Za-z0-9+/=]{16,80}\s{1,4}){1,400}-----END (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY[A-Z ]*-----"
)
_URL_LOGIN = re.compile(r"(?<=://)([^\s:/@\"'<>]{0,100}):([^\s/\"'<>]{1,200})(?=@)")
_BEARER = re.compile(r"(?i)\b(authorization\W{1,4}(?:bearer|basic|token)|bearer)[ \t]+([A-Za-z0-9._~+/=-]{12,})")

# Between a name and its value: quotes and marks that Markdown, JSON and code put there.
_ABOUT = r"(?:[ \t](?:for|of|to|on|für|de|del|pour)(?:[ \t][\w.'-]{1,24}){1,4}?|(?:[ \t][\u0620-\u06ff-]{1,20}){1,4}?)?"
"""What a password is for, between its name and the sign: "for the wifi"."""
_SIGN = (
    rf"[\"'`*_]{{0,3}}{_ABOUT}[ \t]{{0,4}}(?:\([^\n():=]{{0,24}}\))?[ \t]{{0,4}}"
    r"(?::=|=>|[:=：＝])[*_]{0,3}[ \t]{0,4}"
)
_VALUE = r"(?P<quote>[\"'`*_]{0,3})(?P<value>[^\s\"'`<>,;，、؛]{3,200})"
_SIGNS = re.compile("[:=：＝]")
_NAMES = {
    "password": (
        r"(?:password|passwd|(?:wi-?fi|login|admin|root|my|user)[ _-]pass|passphrase|passcode|pwd|passwort"
        r"|(?:(?<=^)|(?<=\n)|(?<=[/|,;] ))pass(?=[ \t]?[:=])"
        r"|kennwort|contraseña|senha|mot de passe|wachtwoord|parola|şifre|пароль|密码|密碼|口令|パスワード|비밀번호"
        r"|(?:ال)?باسوورد|(?:ال)?باسورد|(?:كلمة|كلمه|كلمت[يهك]) (?:ال)?(?:سر|مرور)(?:ية|يه)?"
        r"|(?:ال)?(?:رقم|رمز) (?:ال)?(?:سري|دخول|مرور))"
    ),
    "secret": r"(?:secret|client[_ -]?secret|secret[_ -]?key(?:_base)?|private[_ -]?key|credential)",
    "token": r"(?:access|auth|api|bot|refresh|id|session)?[_ -]?token|(?:ال)?توكن",
    "api key": (
        r"(?:api|access|account|app|auth|encryption|license|service|signing)[_ -]?key"
        r"|مفتاح (?:ال)?(?:api|واجهة)"
    ),
}
_NAMED = tuple((kind, re.compile(rf"(?i)(?:[A-Za-z0-9_.-]{{0,60}}[_.-])?(?:{name})")) for kind, name in _NAMES.items())
_ASSIGNED = tuple((kind, re.compile(rf"(?i)(?<![^\W_])(?:{name}){_SIGN}{_VALUE}")) for kind, name in _NAMES.items())
_SAID = re.compile(
    rf"(?i)(?<![^\W_])(?:{_NAMES['password']})[\"'`*_]{{0,3}}{_ABOUT}"
    rf"(?:[ \t]{{1,4}}(?:is now|is|was|ist|lautet|es|est|é|è|jest|это|هي|هو)[ \t]{{1,4}}|['’]s[ \t]{{1,4}}"
    rf"|[ \t]{{0,4}}(?:是|为|為|は|는|은)[ \t]{{0,4}}){_VALUE}"
)
_BESIDE = re.compile(
    rf"(?i)(?<![^\W_])(?:{_NAMES['password']})[\"'`*_]{{0,3}}"
    rf"(?:[ \t]{{0,4}}(?:->|[–—→|\t])|[ \t]-|[ \t]{{0,4}}(?:\r?\n){{1,2}})[ \t]{{0,4}}{_VALUE}"
)
"""As tables, lists and forms have it."""
_TYPED = re.compile(
    r"(\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n|;&]{0,200}?[ \t]-p|\bsshpass[ \t]{1,4}-p[ \t]{0,4}"
    r"|\bcurl\b[^\n|;&]{0,200}?[ \t](?:-u|--user)[ \t=]{0,4}[\"']?[^\s:\"']{1,100}:)"
    r"([^\s\"'$][^\s\"']{2,200}|[\"'][^\"'\n]{3,200})"
)
"""Programs that are told a password on their line."""
_PIN = re.compile(
    r"(?i)(?<![^\W_])(?:(?:pin(?: code)?|(?:ال)?رقم (?:ال)?سري|رمز (?:ال)?pin)"
    r"(?:[ \t]{0,3}[:=][ \t]{0,3}|[ \t]{1,3}(?:is|ist|es|est|هو)[ \t]{1,3})|(?:ال)?رقم (?:ال)?سري[ \t]{1,3})"
    r"(?P<quote>[\"'`*_]{0,3})(?P<value>[0-9٠-٩]{4,8})(?![0-9٠-٩])"
)
_PLACEHOLDER = re.compile(
    r"(?i)(?:[\[<{($%*•.…]|x{3,}|env:|your|my[_-]|example|changeme|placeholder|os\.|process\.|none\b|null\b|true\b|false\b)"
)
_ORDINARY = re.compile(
    r"(?i)(?:required|optional|unknown|missing|forgotten|forgot|empty|changed|reset|expired|invalid|incorrect|wrong"
    r"|correct|nothing|secret|string|hidden|please|minimum|maximum|security|manager|protected|number|letters|characters"
    r"|anything|something|everything|whatever|another|different|vergessen|geändert|olvidada|oublié|changé|esquecida)\Z"
)
_EDGE = ".!?)]}*_،。！？:"
_MIXED = re.compile(r"(?=\S{0,99}[0-9])(?=\S{0,99}[^\W\d_])\S{6}")
_LINE_END = re.compile(r"[ \t\r\"'`*_.!,;…]*(?:\n|\Z)")

_TOKENS = (
    ("api key", re.compile(r"sk-(?:ant|proj|svcacct|admin|or)-[A-Za-z0-9_-]{12,}")),
    ("api key", re.compile(r"sk-(?=[A-Za-z_-]{0,60}[0-9])[A-Za-z0-9_-]{20,}")),
    ("api key", re.compile(r"(?:gsk_|xai-|pplx-|hf_|r8_|nvapi-|tgp_v1_|fw_)[A-Za-z0-9_-]{20,}")),
    ("google key", re.compile(r"AIza[0-9A-Za-z_-]{30,}")),
    ("google token", re.compile(r"(?:ya29\.|GOCSPX-)[0-9A-Za-z_.-]{16,}")),
    ("github token", re.compile(r"(?:github_pat_[0-9A-Za-z_]{22,}|gh[pousr]_[0-9A-Za-z]{16,})")),
    ("gitlab token", re.compile(r"gl(?:pat|dt|rt|ptt|soat|ft|imt|agent|cbt)-[0-9A-Za-z_.-]{16,}")),
    ("slack token", re.compile(r"(?:xox[abeoprs]-|xapp-[0-9]-)[0-9A-Za-z-]{10,}")),
    ("slack token", re.compile(r"https?://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{10,}")),
    ("discord token", re.compile(r"https?://(?:\w+\.)?discord(?:app)?\.com/api/webhooks/[0-9]+/[A-Za-z0-9_-]{20,}")),
    ("stripe key", re.compile(r"(?:[rs]k_(?:live|test)|whsec)_[0-9A-Za-z]{10,}")),
    ("aws key", re.compile(r"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[0-9A-Z]{16}(?![0-9A-Za-z])")),
    ("bot token", re.compile(r"[0-9]{6,12}:AA[0-9A-Za-z_-]{25,40}(?![0-9A-Za-z])")),
    ("jwt", re.compile(r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?")),
    ("private key", re.compile(r"AGE-SECRET-KEY-1[0-9A-Z]{20,}")),
    (
        "token",
        re.compile(r"(?:npm_[0-9A-Za-z]{20,}|pypi-[0-9A-Za-z_-]{30,}|dop_v1_[0-9a-f]{20,}|shp(?:at|ss)_[0-9a-f]{20,})"),
    ),
    (
        "token",
        re.compile(
            r"(?:SG\.[0-9A-Za-z_-]{16,}\.[0-9A-Za-z_-]{16,}|dapi[0-9a-f]{32}|sq0(?:atp|csp)-[0-9A-Za-z_-]{20,})"
        ),
    ),
)
_START = re.compile(
    r"(?<![A-Za-z0-9_+])(?:sk-|gsk_|xai-|pplx-|hf_|r8_|nvapi-|tgp_|fw_|AIza|ya29\.|GOCSPX-"
    r"|github_pat_|gh[pousr]_|gl[a-z]{2,5}-|xox[a-z]-|xapp-|https?://(?:hooks\.|\w{0,20}\.?discord)|[rs]k_(?:live|test)_|whsec_|A(?:KIA|SIA|BIA|CCA|3T[A-Z0-9])"
    r"|[0-9]{6,12}:AA|eyJ|AGE-SECRET|npm_|pypi-|dop_v1_|shp(?:at|ss)_|SG\.|dapi[0-9a-f]|sq0)"
)
"""Where a key of the table above may begin; each is then looked at with its own rule."""

_LEFT_OUT = re.compile(
    "artifactory|aws|base|basic_auth|cloudant|high_entropy_strings|ibm_.*|ip_public|jwt|keyword|private_key|softlayer"
)
"""The plugins of detect-secrets that go by randomness, would take ordinary words, or have a rule of their own here."""
_WORD = re.compile(r"[A-Za-z0-9_+/=.:~-]{24,}")
_PICTURE = re.compile(r"data:[a-z0-9.+-]{1,40}/|[A-Za-z0-9+/=]{200,}\Z")


class Redactor:
    """Masks what is secret in a text as `[redacted: <kind>]`.

    `known`: secrets of the program itself, masked wherever they stand; shorter ones than 6 characters are too common
    a text to be taken for a secret. The same text twice gives the same; a masked text stays as it is.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        # The longest first: one may be the beginning of another.
        kept = {secret for secret in known if len(secret) >= SECRET_CHARS_MIN}
        self._known = tuple(sorted(kept, key=lambda secret: (-len(secret), secret)))

    def __call__(self, text: str) -> str:
        text = self.known(text)
        if _HINT.search(text) is None:
            return text
        return _words(_tokens(_assigned(_blocks(text))))

    def known(self, text: str) -> str:
        """Masks the program's own secrets only."""
        return without(text, self._known)

    def deep(self, value: Any) -> Any:
        """The same for every text in a JSON value; what stands under a name that says it is secret is masked too."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, Mapping):
            members = cast("Mapping[str, Any]", value).items()
            return {key: self._member(key, inner) for key, inner in members}
        if isinstance(value, (list, tuple)):
            return [self.deep(inner) for inner in cast("Sequence[Any]", value)]
        return value

    def _member(self, key: str, value: Any) -> Any:
        if isinstance(value, str) and value and len(key) <= SECRET_WORD_CHARS_MAX:
            for kind, named in _NAMED:
                if named.fullmatch(key) and _is_secret(value, kind, quoted=True):
                    return _mask(kind)
        return self.deep(value)


REDACT = Redactor()
"""Knows keys by their form and passwords by the word before them, and no secret of the settings."""


def without(text: str, secrets: Sequence[str]) -> str:
    """The text with these very secrets masked."""
    for secret in secrets:
        if secret in text:
            text = text.replace(secret, _mask("secret"))
        escaped = json.dumps(secret, ensure_ascii=False)[1:-1]
        if escaped != secret and escaped in text:
            text = text.replace(escaped, _mask("secret"))
    return text


def _mask(kind: str) -> str:
    return f"{MARK} {kind}]"


def _blocks(text: str) -> str:
    """Private keys, also those of which a cut left the end only, logins in addresses, and authorization headers."""
    if "-----" in text:
        text = _PRIVATE_KEY.sub(_mask("private key"), text)
        text = _KEY_REST.sub(_mask("private key"), text)
    if "://" in text:
        text = _URL_LOGIN.sub(lambda found: f"{found[1]}:{_mask('password')}", text)
    text = _TYPED.sub(lambda found: f"{found[1]}{_mask('password')}", text)
    return _BEARER.sub(lambda found: f"{found[1]} {_mask('token')}", text)


def _assigned(text: str) -> str:
    """Values that stand after a name which says that they are secret."""
    if _SIGNS.search(text):
        for kind, assigned in _ASSIGNED:
            text = assigned.sub(lambda found, kind=kind: _valued(found, kind), text)
    text = _SAID.sub(lambda found: _valued(found, "password", said=True), text)
    text = _BESIDE.sub(
        lambda found: _valued(found, "password", said=True) if _MIXED.match(found["value"]) else found[0], text
    )
    return _PIN.sub(lambda found: _valued(found, "pin"), text)


def _valued(found: re.Match[str], kind: str, *, said: bool = False) -> str:
    whole, value = found[0], found["value"]
    core = value.rstrip(_EDGE) or value
    ends_line = _LINE_END.match(found.string, found.end()) is not None
    quoted = any(mark in found["quote"] for mark in "\"'`")
    if kind != "pin" and not _is_secret(core, kind, quoted=quoted, alone=ends_line and not said):
        return whole
    start = found.start("value") - found.start()
    return f"{whole[:start]}{_mask(kind)}{value[len(core) :]}"


def _is_secret(value: str, kind: str, *, quoted: bool = False, alone: bool = False) -> bool:
    """Whether a value after such a name is one, and no word of a sentence, no number of things and no placeholder."""
    least = 4 if kind == "password" else 8
    if len(value) < least or _PLACEHOLDER.match(value) or not any(letter.isalnum() for letter in value):
        return False
    if _ORDINARY.match(value) or "(" in value:
        return False
    mixed = any(letter.isdigit() for letter in value) and not value.isdigit()
    if kind == "password":
        signs = any(letter in "!@#$%^&*+=~?_-" for letter in value[1:])
        cases = value[1:] != value[1:].lower() and not value.isupper()
        plain = alone and value.isascii() and len(value) >= 6
        return mixed or value.isdigit() or cases or signs or quoted or plain
    return mixed or (quoted and len(value) >= 16) or (len(value) >= 20 and value.isascii())


def _tokens(text: str) -> str:
    """Keys that are known by how they begin."""
    parts: list[str] = []
    done = 0
    for start in _START.finditer(text):
        at = start.start()
        if at < done:
            continue
        for kind, rule in _TOKENS:
            found = rule.match(text, at, at + SECRET_WORD_CHARS_MAX)
            if found:
                end = found.end()
                # What a rule or the bound cut off belongs to it.
                while end < len(text) and ((text[end].isascii() and text[end].isalnum()) or text[end] in "_-"):
                    end += 1
                parts += [text[done:at], _mask(kind)]
                done = end
                break
    return "".join([*parts, text[done:]]) if parts else text


def _words(text: str) -> str:
    """Keys that detect-secrets knows by their form, looked for in words that may be one."""
    parts: list[str] = []
    done = 0
    for word in _WORD.finditer(text):
        body = word[0]
        if len(body) > SECRET_WORD_CHARS_MAX or _PICTURE.match(body):
            continue
        if not any(letter.isdigit() for letter in body):
            continue
        for start, end, kind in _known_forms(body):
            parts += [text[done : word.start() + start], _mask(kind)]
            done = word.start() + end
    return "".join([*parts, text[done:]]) if parts else text


def _known_forms(word: str) -> Iterator[tuple[int, int, str]]:
    """Where a word holds a key, each place once, in order."""
    at = 0
    found = [(match.start(), match.end(), kind) for kind, rule in _forms() for match in rule.finditer(word)]
    for start, end, kind in sorted(found):
        if start < at or _runs_on(word, start, end):
            continue
        yield start, end, kind
        at = end


def _runs_on(word: str, start: int, end: int) -> bool:
    """Whether the match is only a part of a longer run of letters and digits, as a picture in base64 has them."""
    before, after = word[start - 1 : start], word[end : end + 1]
    return bool((before.isalnum() and word[start].isalnum()) or (after.isalnum() and word[end - 1].isalnum()))


@cache
def _forms() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """The patterns of detect-secrets. Loaded when they are first needed, in a tenth of a second: they bring an HTTP
    client along, some MB that a program at rest need not hold."""
    from detect_secrets import plugins

    found: list[tuple[str, re.Pattern[str]]] = []
    for name in sorted(plugin.name for plugin in iter_modules(plugins.__path__)):
        if _LEFT_OUT.fullmatch(name):
            continue
        module = import_module(f"{plugins.__name__}.{name}")
        for value in vars(module).values():
            if isinstance(value, type) and value.__module__ == module.__name__:
                kind, patterns = (
                    str(getattr(value, "secret_type", "secret")),
                    cast("Any", getattr(value, "denylist", ())),
                )
                found += [(kind.lower(), pattern) for pattern in patterns]
    return tuple(found)
