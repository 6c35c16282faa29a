"""The eleven regions by name, and how they are put together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

from agent.amygdala import Amygdala, Confirm
from agent.basalganglia import BasalGanglia
from agent.broca import Broca
from agent.cerebellum import BUILT_IN, CapabilitySource, Cerebellum
from agent.compaction import Compaction
from agent.corpus import Corpus
from agent.cortex.search import Cortex
from agent.hippocampus.episodes import Hippocampus
from agent.limits import MODEL_RETRY_PAUSES_SECONDS, ROUNDS_MAX
from agent.model_sizes import listed_context_tokens
from agent.motor import Motor, Sleep
from agent.prefrontal import Prefrontal
from agent.providers.base import writes
from agent.ras import Ras
from agent.redaction import REDACT
from agent.thalamus import Thalamus
from agent.tokens import ModelContext
from agent.types import Provider, ToolFunction
from agent.usage import Ledger
from agent.wernicke import Wernicke


@dataclass(frozen=True, slots=True)
class Brain:
    """The regions, and what turns share beside them.

    `compaction` keeps a turn's messages within what the model takes; `corpus` is the event log; `ledger` keeps what
    models cost (None: nothing is kept). `rounds_max`: rounds of tools in one turn. `trace` is told each step of a turn
    as it begins. `chosen`: the way to a model that the owner chose for a job, by the model's name.
    """

    prefrontal: Prefrontal
    """Context assembler: puts together what the model gets."""
    ras: Ras
    """Relevance scorer: ranks candidates and shares out tokens."""
    thalamus: Thalamus
    """Model stream: calls the one chosen model, again when a failure may pass."""
    broca: Broca
    """Output stream: the pieces of an answer that a person may see."""
    wernicke: Wernicke
    """Tool-call parser: whole, checked calls from any provider's fragments."""
    amygdala: Amygdala
    """Safety gate: safe, confirm or block for each call."""
    motor: Motor
    """Task runner: runs a call with deadline, further tries and a written step."""
    cerebellum: Cerebellum
    """Capability registry: knows the tools and routes calls to their code."""
    basalganglia: BasalGanglia
    """Outcome log: how each call ended."""
    hippocampus: Hippocampus
    """Episodic memory: a short entry for each turn."""
    cortex: Cortex
    """Memory index: finds what was said, done and kept."""
    compaction: Compaction
    corpus: Corpus
    ledger: Ledger | None = None
    rounds_max: int = ROUNDS_MAX
    trace: Callable[[str], None] | None = None
    chosen: Callable[[str], Thalamus] | None = None

    async def warm(self) -> None:
        """Does now what a turn would else wait for, and removes old event logs. Again after an import: the memory map
        is counted anew."""
        self.corpus.prune()
        await self.prefrontal.refresh()
        provider, context = self.thalamus.provider, self.compaction.context
        if not provider.local and not context.is_set:
            context.looked_up(await listed_context_tokens(provider.name, provider.model))

    def close(self) -> None:
        """Waits until what is written in the background is on disk."""
        self.prefrontal.close()
        self.corpus.close()


def build_brain(
    *,
    workspace: Path,
    provider: Provider,
    cortex: Cortex,
    functions: Mapping[str, Mapping[str, ToolFunction]],
    folders: Sequence[Path] | None = None,
    sources: Sequence[CapabilitySource] = (),
    zone: ZoneInfo,
    now: Callable[[], datetime],
    agent_name: str = "Hudhud",
    context_tokens: int = 0,
    rounds_max: int = ROUNDS_MAX,
    retry_seconds: Sequence[float] = MODEL_RETRY_PAUSES_SECONDS,
    ledger: Ledger | None = None,
    confirm: Confirm = "risky",
    redact: Callable[[str], str] = REDACT,
    sleep: Sleep = asyncio.sleep,
    trace: Callable[[str], None] | None = None,
    chosen: Callable[[str], Provider] | None = None,
) -> Brain:
    """Makes the regions and gives each the others it may call.

    `functions`: the code of the built-in tools, by capability and tool name; `folders` hold the SKILL.md files (None:
    the built-in ones and the workspace's `skills/`); `sources` are capabilities from elsewhere. `zone` is the owner's.
    `now` gives aware UTC times. `context_tokens` 0: a cautious default. `confirm`: what the owner is asked about, the
    risky or all that changes something. `redact` masks secrets in what is recalled and written down. `retry_seconds`:
    the pauses before the model is called again; `sleep` comes between tries of a tool. `chosen`: the provider of a
    model chosen for a job.
    """
    ras, context, basalganglia = Ras(), ModelContext(context_tokens), BasalGanglia(workspace, zone)
    folders = (BUILT_IN, workspace / "skills") if folders is None else folders
    cerebellum = Cerebellum(functions, folders, trace, workspace=workspace, sources=sources)
    assembles, digest = (workspace, ras, cortex, cerebellum, zone, now), basalganglia.digest
    return Brain(
        prefrontal=Prefrontal(*assembles, context=context, agent_name=agent_name, digest=digest, redact=redact),
        ras=ras,
        thalamus=Thalamus(provider, pauses_seconds=retry_seconds),
        broca=Broca(),
        wernicke=Wernicke(),
        amygdala=Amygdala(cerebellum.patterns, workspace, confirm=confirm),
        motor=Motor(cerebellum, workspace, now, sleep),
        cerebellum=cerebellum,
        basalganglia=basalganglia,
        hippocampus=Hippocampus(workspace, zone),
        cortex=cortex,
        compaction=Compaction(context, writes=writes(provider)),
        corpus=Corpus(workspace, zone, now, redact),
        ledger=ledger,
        rounds_max=rounds_max,
        trace=trace,
        chosen=None if chosen is None else _ways(chosen, retry_seconds),
    )


def _ways(chosen: Callable[[str], Provider], retry_seconds: Sequence[float]) -> Callable[[str], Thalamus]:
    @cache
    def way(model: str) -> Thalamus:
        return Thalamus(chosen(model), pauses_seconds=retry_seconds)

    return way
