"""What `/metrics` says, in the text format of Prometheus. The library is loaded with the first question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "hudhud"


def exposition(status: Mapping[str, Any], usage: Mapping[str, Any], sizes: Mapping[str, int]) -> bytes:
    """`status` and `usage` are the shapes of docs/formats.md, the latter of all days; `sizes`: file to bytes."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Facts(list(_metrics(status, usage, sizes))))
    return generate_latest(registry)


class _Facts:
    """A collector of metrics that are known already."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> list[Metric]:
        return self._metrics


def _metrics(status: Mapping[str, Any], usage: Mapping[str, Any], sizes: Mapping[str, int]) -> Iterator[Metric]:
    from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

    def gauge(name: str, text: str, value: float) -> Metric:
        return GaugeMetricFamily(f"{PREFIX}_{name}", text, value=value)

    yield InfoMetricFamily(PREFIX, "The program.", value={"version": str(status["version"])})
    yield gauge("uptime_seconds", "Time since the start.", status["uptime_seconds"])
    yield gauge("queue_waiting_messages", "Messages that wait for a turn.", status["queue"]["waiting"])
    yield gauge("queue_running_turns", "Turns that run.", status["queue"]["running"])
    yield gauge("deliveries_open", "Replies on their way.", status["queue"]["deliveries"])
    yield gauge("index_complete", "1 when everything saved can be searched.", not status["index"].get("indexing"))

    connected = GaugeMetricFamily(
        f"{PREFIX}_channel_connected", "1 when the channel is up.", labels=["channel", "state"]
    )
    received = GaugeMetricFamily(
        f"{PREFIX}_channel_last_receive_timestamp_seconds", "Last certain news from the platform.", labels=["channel"]
    )
    sent = GaugeMetricFamily(
        f"{PREFIX}_channel_last_send_timestamp_seconds", "Last reply that the platform confirmed.", labels=["channel"]
    )
    for channel in status["channels"]:
        if not channel["enabled"]:
            continue
        connected.add_metric([channel["channel"], channel["state"]], channel["connected"])
        for family, at in ((received, channel["last_receive_at"]), (sent, channel["last_send_at"])):
            if at is not None:
                family.add_metric([channel["channel"]], datetime.fromisoformat(at).timestamp())
    yield from (connected, received, sent)

    yield CounterMetricFamily(f"{PREFIX}_model_requests", "Model calls that were answered.", value=usage["requests"])
    tokens = CounterMetricFamily(f"{PREFIX}_model_tokens", "Tokens of model calls.", labels=["kind"])
    for kind in ("input", "output", "cache_read", "cache_write"):
        tokens.add_metric([kind], usage[f"{kind}_tokens"])
    yield tokens
    yield CounterMetricFamily(f"{PREFIX}_model_cost_usd", "What model calls cost.", value=usage["cost_usd"] or 0.0)

    files = GaugeMetricFamily(f"{PREFIX}_file_bytes", "Size of a file of the home.", labels=["file"])
    for name, size in sizes.items():
        files.add_metric([name], size)
    yield files
