"""The figures of a run, beside the limits they are held to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Limit:
    """What a figure should reach. `more` is True where a larger value is the better one (a rate). `floor`: the least
    that will do."""

    unit: str
    target: float | None = None
    beyond: float | None = None
    more: bool = False
    floor: float | None = None


_PLAIN = {"p50": Limit("ms"), "p99": Limit("ms"), "rows_per_second": Limit("1/s", more=True)}
"""Of these the value alone counts: a disk decides them."""


def _share(floor: float | None = None, target: float | None = None, beyond: float | None = None) -> Limit:
    return Limit("share", target, beyond, more=True, floor=floor)


LIMITS: Mapping[str, Limit] = {
    **{
        f"accept_{way}_{clients}_{name}": limit
        for way in ("direct", "http")
        for clients in (1, 64)
        for name, limit in _PLAIN.items()
    },
    "accept_direct_64_times_bare": Limit("x", 3, 3.9, more=True),
    "accept_http_64_times_bare": Limit("x", 2, 3.9, more=True),
    "accept_direct_64_rows_per_commit": Limit("rows", 16, more=True),
    "accept_http_64_rows_per_commit": Limit("rows", 16, more=True),
    "turn_inapp_p50": Limit("ms", 8, 4),
    "turn_inapp_cpu": Limit("s", 0.008, 0.004),
    "turn_telegram_p50": Limit("ms", 12, 6),
    "turn_telegram_cpu": Limit("s", 0.010, 0.005),
    "turn_inapp_full_p50": Limit("ms", 8, 4),
    "turn_inapp_full_cpu": Limit("s", 0.008, 0.004),
    "turn_telegram_full_p50": Limit("ms", 12, 6),
    "turn_telegram_full_cpu": Limit("s", 0.010, 0.005),
    "turn_inapp_full_times_empty": Limit("x", 1.3),
    "turn_inapp_full_times_empty_cpu": Limit("x", 1.3),
    "turn_telegram_full_times_empty": Limit("x", 1.3),
    "turn_telegram_full_times_empty_cpu": Limit("x", 1.3),
    "chats_inapp_turns_per_second": Limit("1/s", 120, 250, more=True),
    "chats_telegram_turns_per_second": Limit("1/s", 100, 200, more=True),
    "start_until_ready": Limit("s", 1.2, 0.8),
    "start_cpu": Limit("s"),
    "idle_memory": Limit("MB", 100, 80),
    "help": Limit("s", 0.2, 0.1),
    "request_tokens": Limit("tokens", 6_000, 4_500),
    "request_bytes": Limit("bytes", 24_000, 12_000),
    "request_tools": Limit("tools"),
    "index_messages_per_second": Limit("1/s", 8_000, 15_000, more=True),
    "search_common_word_p50": Limit("ms", 20, 10),
    "rebuild_seconds": Limit("s"),
    "rebuild_cpu": Limit("s"),
    "rebuild_times_bare": Limit("x", 1.8),
    "rebuild_times_bare_and_folding": Limit("x", 1.8),
    "rebuild_memory": Limit("MB", 300, 150),
    "rebuild_one_message_p50": Limit("ms", 1, 0.5),
    "context_p50": Limit("ms", 5, 3),
    "files_check": Limit("ms"),
    "files_check_times_bare": Limit("x", 1.5),
    "files_index_artifacts": Limit("s", 10),
    "files_check_artifacts": Limit("s", 1.3),
    "files_seen_p50": Limit("s", 1),
    "files_seen_slowest": Limit("s", 1),
    "files_watch_idle_cpu": Limit("s"),
    **{
        f"find_{size}_{name}": limit
        for size, one_chat, over_all, word in (
            ("6000", (8, 5, 20), (25, 15, 60), None),
            ("100000", (15, 8, 40), (60, 30, 150), 20),
            ("1000000", (40, None, None), (300, None, None), None),
        )
        for name, limit in {
            "one_chat_p50": Limit("ms"),
            "one_chat_p95": Limit("ms", one_chat[0], one_chat[1], floor=one_chat[2]),
            "all_p50": Limit("ms"),
            "all_p95": Limit("ms", over_all[0], over_all[1], floor=over_all[2]),
            "word_in_8_percent_p50": Limit("ms", word),
            "word_in_8_percent_p95": Limit("ms"),
            "word_in_80_percent_p50": Limit("ms"),
            "word_in_80_percent_p95": Limit("ms"),
            "words_in_80_and_8_percent_p50": Limit("ms"),
            "words_in_80_and_8_percent_p95": Limit("ms"),
        }.items()
    },
    "recall_inside_r5": _share(),
    "recall_inside_r10": _share(0.77, 0.80, 0.83),
    "recall_inside_r25": _share(),
    "recall_inside_r50": _share(),
    "recall_inside_mrr": _share(0.59, 0.62, 0.65),
    "recall_one_index_r10": _share(0.72, 0.76, 0.80),
    "recall_multi_hop_r10": _share(0.46, 0.50, 0.55),
    "recall_conv26_r5": _share(0.66, 0.69, 0.73),
    "recall_conv26_r10": _share(0.78, 0.81, 0.84),
    "recall_conv26_r25": _share(0.87, 0.89, 0.92),
    "recall_conv26_r50": _share(0.91, 0.93, 0.95),
    **{
        f"recall_{name}_{grain}_r10": limit
        for name, paragraph, sentence in (
            ("arabic_xquad", _share(0.95, 0.965, 0.98), _share(0.86, 0.90, 0.93)),
            ("arabic_arcd", _share(0.95, 0.965, 0.98), _share(0.86, 0.90, 0.93)),
            ("chinese_cmrc", _share(0.98, 0.995, 0.997), _share(0.88, 0.91, 0.93)),
            ("chinese_drcd", _share(0.98, 0.995, 0.997), _share(0.88, 0.91, 0.93)),
            ("japanese_jsquad", _share(0.97, 0.98, 0.985), _share(0.88, 0.905, 0.93)),
        )
        for grain, limit in (("paragraph", paragraph), ("sentence", sentence))
    },
    **{f"recall_{name}": Limit("ms") for name in ("dialogs_p50", "dialogs_p95", "passages_p50", "passages_p95")},
    "reflect_year": Limit("s", 5, 2.5),
    "reflect_year_again": Limit("s", 5, 1.5),
    "reflect_recall_p50": Limit("ms", 10, 5),
    "reflect_recall_p95": Limit("ms", 15, 8),
    "backlog_durable": Limit("s", 3),
    "backlog_answered": Limit("s"),
    "backlog_flood_others": Limit("s", 3),
    "backlog_memory_growth": Limit("MB", 40),
    "backlog_memory": Limit("MB"),
    "stream_arguments": Limit("s", 1, 0.5),
    "stream_arguments_openai": Limit("s"),
    "stream_arguments_anthropic": Limit("s"),
    "classify_short_p50": Limit("ms"),
    "classify_10kb_slowest": Limit("ms", 20, 10),
    "clock_start": Limit("s", 1),
    "clock_idle_cpu": Limit("%", 0.5),
    "clock_drift": Limit("s", 1),
    "install_packages": Limit("packages", 60, 50),
    "install_size": Limit("MB", 130, 90),
}
"""Every figure by its name. `full` is with the messages indexed, the others without any."""


def figure(name: str, value: float, bare: float | None = None) -> dict[str, Any]:
    """One figure as it is printed.

    `of_target` is the value as a multiple of its limit, for a rate the limit as a multiple of the value: at most 1
    is good. `bare` is what the libraries do with no work of ours, measured in the same run. Null: there is none.
    """
    limit = LIMITS[name]
    of_target = None
    if limit.target is not None:
        of_target = round(limit.target / value if limit.more else value / limit.target, 3)
    return {
        "name": name,
        "value": _short(value),
        "unit": limit.unit,
        "target": limit.target,
        "beyond": limit.beyond,
        "floor": limit.floor,
        "of_target": of_target,
        "bare": None if bare is None else _short(bare),
        "ok": None if of_target is None else of_target <= 1,
    }


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def _short(value: float) -> float:
    """Four figures are more than a shared machine can tell apart."""
    return float(f"{value:.4g}")
