"""The sentences of a failed model call, in English and Arabic, and what the answer of a service means.

A kind that may pass by itself is tried again; the others are the person's to mend.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast

from agent.redaction import Redactor
from agent.types import ContextOverflow, ProviderError

DETAIL_CHARS_MAX = 200
_KEYS = re.compile(r"\b(?:sk|pk|rk|gsk|xai|key|bearer)[-_ ][\w*.\-]{6,}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of failure. The sentences may name `{detail}`."""

    transient: bool
    english: str
    arabic: str


BUSY = Kind(
    True,
    "The model service is busy or its rate limit is reached; try again in a while.",
    "خدمة النموذج مشغولة أو بُلغ حدّ الطلبات فيها؛ حاول مرة أخرى بعد قليل.",
)
DOWN = Kind(
    True,
    "The model service has a fault of its own; try again in a while.",
    "في خدمة النموذج عطل داخلي؛ حاول مرة أخرى بعد قليل.",
)
SLOW = Kind(
    True,
    "The model did not answer in time; try again in a while, or raise timeout_seconds under [model] in config.toml.",
    "لم يُجب النموذج في الوقت المحدد؛ حاول مرة أخرى بعد قليل، أو ارفع قيمة timeout_seconds في قسم [model] من "
    "الملف config.toml.",
)
UNREACHABLE = Kind(
    True,
    "The model service at {detail} cannot be reached; check the network, and base_url under [model] in config.toml.",
    "تعذّر الوصول إلى خدمة النموذج على العنوان {detail}؛ تحقق من الشبكة ومن base_url في قسم [model] "
    "من الملف config.toml.",
)
GARBLED = Kind(
    True,
    "The model service sent something that cannot be read as an answer; try again in a while.",
    "أرسلت خدمة النموذج ما لا يمكن قراءته ردًّا؛ حاول مرة أخرى بعد قليل.",
)
REPORTED = Kind(
    True,
    "The model service broke off its answer with an error; try again in a while.",
    "قطعت خدمة النموذج ردّها بسبب خطأ؛ حاول مرة أخرى بعد قليل.",
)
BROKE_OFF = Kind(
    True,
    "The model's answer broke off before it was complete; send the message again in a while.",
    "انقطع رد النموذج قبل أن يكتمل؛ أعد إرسال الرسالة بعد قليل.",
)
KEY = Kind(
    False,
    "The model service does not accept the API key; check api_key under [model] in config.toml.",
    "لا تقبل خدمة النموذج مفتاح API؛ تحقق من api_key في قسم [model] من الملف config.toml.",
)
FORBIDDEN = Kind(
    False,
    "The API key may not use this model; choose another name under [model] in config.toml, or another key.",
    "لا يسمح مفتاح API باستخدام هذا النموذج؛ غيّر name في قسم [model] من الملف config.toml، أو استخدم مفتاحًا آخر.",
)
NOT_FOUND = Kind(
    False,
    "The model service does not know this model or address; check name and base_url under [model] in config.toml.",
    "لا تعرف خدمة النموذج هذا النموذج أو هذا العنوان؛ تحقق من name و base_url في قسم [model] من الملف config.toml.",
)
TOO_LONG = Kind(
    False,
    "The request is too long for this model; begin a new conversation with /new, or send less at once.",
    "الطلب أطول مما يقبله هذا النموذج؛ ابدأ محادثة جديدة بالأمر ‎/new، أو أرسل نصًّا أقصر.",
)
NO_CREDIT = Kind(
    False,
    "The account at the model service has no credit left; top it up, or choose another model under [model] in "
    "config.toml.",
    "نفد رصيد الحساب لدى خدمة النموذج؛ اشحنه، أو اختر نموذجًا آخر في قسم [model] من الملف config.toml.",
)
WITHHELD = Kind(
    False,
    "The model service withheld the answer by its content rules; put the request in other words.",
    "حجبت خدمة النموذج الرد وفق قواعد المحتوى لديها؛ أعد صياغة الطلب.",
)
REFUSED = Kind(
    False,
    "The model service refuses the request; check name and base_url under [model] in config.toml.",
    "ترفض خدمة النموذج الطلب؛ تحقق من name و base_url في قسم [model] من الملف config.toml.",
)
NO_API = Kind(
    False,
    "At base_url a web page answers and no model service; it often ends with /v1: check it under [model] in "
    "config.toml.",
    "تجيب على base_url صفحة ويب لا خدمة نموذج؛ غالبًا ما ينتهي العنوان بـ ‎/v1: تحقق منه في قسم [model] "
    "من الملف config.toml.",
)
CERTIFICATE = Kind(
    False,
    "The certificate of the model service at {detail} is not valid; check base_url under [model] in config.toml and "
    "this machine's clock.",
    "شهادة خدمة النموذج على العنوان {detail} غير صالحة؛ تحقق من base_url في قسم [model] من "
    "الملف config.toml ومن ساعة هذا الجهاز.",
)
NO_NAME = Kind(
    False,
    "No model is named; set name under [model] in config.toml.",
    "لم يُحدَّد اسم النموذج؛ عيّن name في قسم [model] من الملف config.toml.",
)
NO_KEY = Kind(
    False,
    "There is no API key for the model service; set api_key under [model] in config.toml.",
    "لا يوجد مفتاح API لخدمة النموذج؛ عيّن api_key في قسم [model] من الملف config.toml.",
)
NO_LIBRARY = Kind(
    False,
    "The library for this model service is not installed; install it with: pip install '{detail}'",
    "المكتبة اللازمة لخدمة النموذج هذه غير مثبتة؛ ثبّتها بالأمر: pip install '{detail}'",
)
BAD_ADDRESS = Kind(
    False,
    "base_url under [model] in config.toml is no web address; it looks like https://host/v1.",
    "قيمة base_url في قسم [model] من الملف config.toml ليست عنوان ويب؛ مثالها: https://host/v1.",
)

_BY_STATUS = {
    400: REFUSED,
    401: KEY,
    402: NO_CREDIT,
    403: FORBIDDEN,
    404: NOT_FOUND,
    408: SLOW,
    409: BUSY,
    413: TOO_LONG,
    422: REFUSED,
    425: BUSY,
    429: BUSY,
}
# The words services put into `code` or `type` of an error; they say more than the status.
_BY_WORD = {
    "insufficient_quota": NO_CREDIT,
    "billing_not_active": NO_CREDIT,
    "context_length_exceeded": TOO_LONG,
    "string_above_max_length": TOO_LONG,
    "billing_error": NO_CREDIT,
    "exceed_context_size_error": TOO_LONG,
    "request_too_large": TOO_LONG,
    "model_not_found": NOT_FOUND,
    "not_found_error": NOT_FOUND,
    "invalid_api_key": KEY,
    "authentication_error": KEY,
    "permission_error": FORBIDDEN,
    "content_filter": WITHHELD,
    "content_policy_violation": WITHHELD,
    "rate_limit_exceeded": BUSY,
    "rate_limit_error": BUSY,
    "overloaded_error": BUSY,
    "server_error": DOWN,
    "api_error": DOWN,
    "timeout_error": SLOW,
}
# Services that say it in their message alone. A limit of the answer's length is none of the request's.
_BY_MESSAGE = (
    (
        re.compile(
            r"(prompt|input|request|messages?) (is|are) too (long|large)|context[ _](length|size|window)"
            r"|input token count|input length",
            re.IGNORECASE,
        ),
        TOO_LONG,
    ),
    (re.compile(r"credit balance is too low|insufficient (balance|credit|quota)", re.IGNORECASE), NO_CREDIT),
)


def failure(
    kind: Kind, detail: str = "", *, status: int | None = None, retry_after_seconds: float | None = None
) -> ProviderError:
    """The ProviderError of one kind. `detail` fills `{detail}`, or follows as the service's own words."""
    english, arabic = kind.english, kind.arabic
    if "{detail}" in english:
        english, arabic = english.replace("{detail}", detail), arabic.replace("{detail}", detail)
    elif detail:
        english = f"{english[:-1]} (it says: {detail})."
        arabic = f"{arabic[:-1]} (تقول الخدمة: {detail})."
    error = ContextOverflow if kind is TOO_LONG else ProviderError
    return error(
        english, transient=kind.transient, status=status, retry_after_seconds=retry_after_seconds, arabic=arabic
    )


def refusal(status: int | None, body: object, secret: str, headers: Mapping[str, str] | None = None) -> ProviderError:
    """What a service's refusal comes to. `status` None: an error inside a stream. `body` is what it sent, parsed when
    it is JSON: the error object, or an object that holds it as `error`. `secret` is kept out of the sentence."""
    body = _error_object(body)
    kind = kind_of(status, body)
    # What a service says about a key may hold the key.
    detail = "" if kind is KEY else detail_of(body, secret)
    seconds = retry_after(headers or {}) if kind.transient else None
    return failure(kind, detail, status=status, retry_after_seconds=seconds)


def _error_object(body: object) -> object:
    if isinstance(body, Mapping):
        inner = cast("Mapping[str, Any]", body).get("error")
        if inner:
            return {"message": inner} if isinstance(inner, str) else cast("object", inner)
    return cast("object", body)


def kind_of(status: int | None, body: object) -> Kind:
    """What a refusal means. `status` None: an error object inside a stream; its numeric `code` then counts as one."""
    words = _words(body)
    for word in words:
        if word in _BY_WORD:
            return _BY_WORD[word]
    if status in (None, 400, 402, 413, 422, 429):
        message = _message(body)
        for pattern, kind in _BY_MESSAGE:
            if pattern.search(message):
                return kind
    if status is None:
        status = next((int(word) for word in words if word.isdecimal() and len(word) == 3), None)
    if status is None:
        # It is the type of nearly every 4xx: whatever is more exact comes first.
        return REFUSED if "invalid_request_error" in words else REPORTED
    if status >= 500:
        return DOWN
    return _BY_STATUS.get(status, REFUSED if status >= 400 else REPORTED)


def _words(body: object) -> list[str]:
    """`code` and `type` of an error object, the more exact one first."""
    if not isinstance(body, Mapping):
        return []
    fields = cast("Mapping[str, Any]", body)
    return [str(fields[name]) for name in ("code", "type", "status") if fields.get(name) is not None]


def detail_of(body: object, secret: str) -> str:
    """The service's own message on one line, cut, without keys; empty when it sent none."""
    message = _message(body)
    message = Redactor([secret])(message)
    line = " ".join(_KEYS.sub("[redacted: api key]", message).split()).rstrip(".")
    return line if len(line) <= DETAIL_CHARS_MAX else f"{line[:DETAIL_CHARS_MAX]}…"


def _message(body: object) -> str:
    message = cast("Mapping[str, Any]", body).get("message") if isinstance(body, Mapping) else None
    return message if isinstance(message, str) else ""


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds a service asks to wait: `retry-after-ms`, or `retry-after` as seconds or as a date (RFC 9110, 10.2.3)."""
    try:
        return max(0.0, float(headers["retry-after-ms"]) / 1000)
    except (KeyError, ValueError):
        pass
    value = headers.get("retry-after", "")
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (at - (now or datetime.now(UTC))).total_seconds())
