"""Builds every object once, starts and stops them in order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from agent.brain import Brain, build_brain
from agent.capabilities.messages.tools import Messages
from agent.capabilities.schedule.tools import Schedule
from agent.cortex.watch import Watcher
from agent.mcp import McpServers
from agent.providers.base import warm
from agent.turn import run_turn
from agent.types import Provider, ToolFailure, Turn, TurnPort, TurnResult
from agent.usage import warm_prices
from channels import registry
from channels.channel import Channel, ChannelContext, HasRoutes, Page
from channels.scheduled.channel import ScheduledChannel
from channels.scheduled.quiet import is_quiet
from channels.scheduled.types import CHANNEL_IDS
from gateway.alerts import Alerts
from gateway.approvals import Approvals
from gateway.arrivals import Arrivals
from gateway.backend import OwnerBackend
from gateway.chores import ChannelWatch, memory_jobs, upkeep_jobs
from gateway.clock import Clock
from gateway.commands import MENU
from gateway.config import Settings
from gateway.drafts import Drafts
from gateway.health import ChannelReport
from gateway.home import HomeLock, forget_running, prepare, write_running
from gateway.http import HttpServer
from gateway.inbox import Inbox
from gateway.library import Library, chosen_model, model_of, utc_now
from gateway.limits import READLOG_MARK_SECONDS
from gateway.linking import Linking
from gateway.messenger import Messenger
from gateway.observe import Observers
from gateway.outbox import Outbox
from gateway.people import People
from gateway.queue import Queue
from gateway.schedules import OwnersSchedules
from gateway.sentences import language_of, sentence
from gateway.spending import Spending
from gateway.store import StoreError
from gateway.supervise import supervise
from gateway.transcribe import Transcriber
from gateway.uploads import UploadFolder
from gateway.wiring import FactMemory, mcp_servers

LOG = logging.getLogger(__name__)


class App:
    """One gateway on one home. `start`, then `run` until it is cancelled, then `stop`.

    `serve` False: for one chat in this process. Nothing listens, and what waits from before is left to the gateway.
    """

    def __init__(
        self,
        home: Path,
        settings: Settings,
        *,
        now: Callable[[], datetime] = utc_now,
        provider: Provider | None = None,
        serve: bool = True,
    ) -> None:
        self.home = home
        self.settings = settings
        self._now = now
        self._given_provider = provider
        self._serve = serve
        self._lock = HomeLock(home)
        self._stack = contextlib.AsyncExitStack()
        self.channels: dict[str, Channel] = {}
        self._reports: list[tuple[Channel, ChannelReport]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.server: HttpServer | None = None

    async def start(self) -> None:
        """Everything up to `ready`. Raises HomeError, StoreError, HttpError, ProviderError, ImportError: one sentence
        each, with nothing left running."""
        try:
            await self._start()
        except BaseException:
            await self._end()
            raise

    async def _start(self) -> None:
        prepare(self.home, self.settings.agent.name)
        self._lock.acquire()
        self._stack.callback(self._lock.release)
        self.library = await Library.open(self.home, self.settings, self._now)
        self._stack.push_async_callback(self.library.close)
        self.store, self.health = self.library.store, self.library.health
        self.people = People(self.settings, self.store)
        self.readlog = self.library.readlog
        self.observers = Observers()
        self.uploads = UploadFolder(self.home / "workspace", self._now)
        self._build_core()
        self.inbox.connect(self.queue, self.backend)
        await self._create_channels()
        self.clock = self._build_clock()
        self.runner = self.backend.runner = self.clock.runner
        await self._listen()
        await self._recover()
        self.watcher = Watcher(self.library.cortex.files, faults=(StoreError,))
        self._run(self._keep_marks())
        self._run(self._keep_index())
        self.health.on_change = self.watch.changed
        for channel, report in self._reports:
            self._run(supervise(channel, self.inbox.accept, report, now=self._now, ended=self.watch.ended))
        if self.settings.heartbeat.enabled:
            self.clock.start()
            self._stack.push_async_callback(self.clock.stop)
        self.health.ready = True
        self._run(warm(self._provider))
        if not self._provider.local:
            self._run(warm_prices())
        if self.settings.mcp.servers:
            self._run(self.mcp.run())
        self._run(self.library.keep_meaning(self.settings.memory.embeddings))

    def _build_core(self) -> None:
        """The objects a message passes, each given those it talks to."""
        self.outbox = Outbox(
            self.store, self.channels, self.readlog, self.health, self.observers, self.people, self._now
        )
        self.spending = Spending(self.store, self.settings, self.home / "workspace", self._now, self._warn_owner)
        self.mcp = McpServers(mcp_servers(self.settings), self.home / "workspace")
        self.brain = self._build_brain()
        self._stack.callback(self.brain.close)
        self.approvals = Approvals(self.store, self.outbox, self.channels, self.people, self.observers, self._now)
        self.approvals.remove = self.library.remover.remove
        self.alerts = Alerts(
            self.settings, self.store, self.outbox, self.channels, self.people, self.readlog, self.observers, self._now
        )
        self.linking = Linking(self.channels, self.health.reports)
        self.watch = ChannelWatch(
            self.store, self.health, self.linking, self.alerts, self.settings.agent.language, self._now
        )
        self.arrivals = self._build_arrivals()
        self.queue = Queue(
            self.settings,
            self.store,
            self.outbox,
            self.readlog,
            self.channels,
            self.observers,
            self.approvals,
            self._run_turn,
            self._now,
            is_quiet=is_quiet,
            is_held=self.arrivals.is_held,
            drafts=Drafts(self.outbox, self.channels),
        )
        self.inbox = Inbox(
            self.settings,
            self.people,
            self.store,
            self.readlog,
            self.outbox,
            self.channels,
            self.observers,
            self.approvals,
            self.arrivals,
            self._now,
        )
        self.arrivals.connect(self.queue.wake)
        self.backend = self._build_backend()
        self.library.remover.on_removed = self.backend.removed
        self.library.state.running = self.backend.status

    def _build_backend(self) -> OwnerBackend:
        return OwnerBackend(
            store=self.store,
            introspect=self.library.introspect,
            upkeep=self.library.upkeep,
            queue=self.queue,
            outbox=self.outbox,
            approvals=self.approvals,
            people=self.people,
            health=self.health,
            workspace=self.home / "workspace",
            model=self.model,
            now=self._now,
            spending=self.spending,
            observe=self.observers,
            forget_prompts=self.brain.prefrontal.forget,
            linking=self.linking,
        )

    def _build_arrivals(self) -> Arrivals:
        return Arrivals(
            self.settings,
            self.store,
            self.channels,
            self.readlog,
            self.outbox,
            self.observers,
            Transcriber(self.settings.transcribe, self.home / "workspace"),
            self._now,
        )

    def _chosen(self, name: str) -> Provider:
        """The model that the owner chose for a job: another one of the same service, or the built-in one."""
        if name in {self._provider.model, self.settings.model.name}:
            return self._provider
        return self._closed_at_end(chosen_model(self.settings, self.home / "workspace", name))

    def _closed_at_end(self, provider: Provider) -> Provider:
        self._stack.push_async_callback(provider.close)
        return provider

    def _build_brain(self) -> Brain:
        model, workspace = self.settings.model, self.home / "workspace"
        self._provider = self._closed_at_end(self._given_provider or model_of(self.settings, workspace))
        self.library.think_with(self._provider, self.spending, self._now)
        messenger = Messenger(self.store, self.outbox, self.channels, self.people, workspace, self._now)
        self.schedules = OwnersSchedules(workspace, self.store)
        functions = {
            **self.library.functions(),
            "messages": Messages(messenger, workspace).functions(),
            "schedule": Schedule(self.schedules, self.settings.zone).functions(),
        }
        return build_brain(
            workspace=workspace,
            provider=self._provider,
            cortex=self.library.cortex,
            functions=functions,
            sources=[self.mcp],
            ledger=self.spending,
            retry_seconds=model.retry_seconds,
            zone=self.settings.zone,
            now=self._now,
            agent_name=self.settings.agent.name,
            context_tokens=model.context_tokens,
            rounds_max=self.settings.agent.max_rounds,
            confirm=self.settings.safety.confirm,
            redact=self.library.redactor,
            chosen=self._chosen,
        )

    @property
    def model(self) -> str:
        """What `status` calls the model: the provider, and the model's own name where it has one."""
        name, model = self._provider.name, self._provider.model
        return name if model in {"", name} else f"{name} {model}"

    def _warn_owner(self, name: str) -> None:
        """Tells the owner one of the gateway's own sentences, in the home chat."""
        self._run(self._tell_owner(name))

    async def _tell_owner(self, name: str) -> None:
        home = self.people.home()
        if home is None or home.channel not in self.channels:
            return
        info = self.channels[home.channel].info
        text = sentence(name, language_of("", self.settings.agent.language))
        key = f"alert:{name}:{self._now():%Y%m%d%H%M%S%f}"
        self.outbox.put(await self.store.notice(home, info.conversations, text, key, info.saved_is_sent, self._now()))

    async def _run_turn(self, turn: Turn, port: TurnPort) -> TurnResult:
        return await run_turn(self.brain, turn, port)

    async def _create_channels(self) -> None:
        for name in registry.CHANNELS:
            settings = self.settings.channel(name)
            report = self.health.add(name, enabled=settings.enabled)
            received, sent = await self.store.last_received(name), await self.store.last_sent(name)
            self.health.known(name, received=received, sent=sent)
            if settings.enabled:
                self._add(name, registry.create(name, self._context(name, settings, report)), report)
        report = self.health.add(CHANNEL_IDS[0], enabled=self.settings.heartbeat.enabled)
        self.scheduled = ScheduledChannel(self._context(CHANNEL_IDS[0], None, report))
        for name in CHANNEL_IDS:
            self.channels[name] = self.scheduled
        self._reports.append((self.scheduled, report))

    def _context(self, name: str, settings: Any, report: ChannelReport) -> ChannelContext:
        return ChannelContext(
            settings=settings,
            home=self.home,
            health=report,
            memory=FactMemory(self.store, name, self._chat_moved),
            uploads=self.uploads,
            backend=self.backend,
            now=self._now,
            commands=MENU,
        )

    def _chat_moved(self, old_key: str, new_key: str) -> None:
        self.arrivals.moved(old_key, new_key)
        self.queue.moved(old_key, new_key)

    def _add(self, name: str, channel: Channel, report: ChannelReport) -> None:
        self.channels[name] = channel
        if isinstance(channel, Page):
            self.backend.page = name
        self._reports.append((channel, report))

    def _build_clock(self) -> Clock:
        jobs = (
            *upkeep_jobs(self.home, self.store, self.watch),
            *memory_jobs(self.settings.memory, lambda: self.library.reflection),
        )
        return Clock(self.home, self.settings, self.store, self._now, jobs, self.scheduled, self.alerts, self.schedules)

    async def _listen(self) -> None:
        """The HTTP server, with the routes of every channel that has some."""
        served = [channel for channel in self.channels.values() if isinstance(channel, HasRoutes)]
        routes = [route for channel in served for route in channel.routes()]
        if not routes or not self._serve:
            return
        # Whatever is served stands at the address of the page, also when the page itself is off.
        settings = self.settings.channel(registry.SERVER)
        self.server = HttpServer(settings.host, settings.port, routes, self.health, self.backend.metrics)
        await self.server.start()
        self._stack.push_async_callback(self.server.stop)
        facts: dict[str, Any] = {"pid": os.getpid(), "address": self.server.address}
        if (page := self._page) is not None:
            self.observers.add(page.hub.publish)
            facts["token"] = page.token
            write_running(self.home, facts)
            self._stack.callback(forget_running, self.home)

    @property
    def _page(self) -> Page | None:
        return next((channel for channel in self.channels.values() if isinstance(channel, Page)), None)

    async def _recover(self) -> None:
        """What the last run left: lines the logs lack, replies on their way, messages that wait."""
        await self.readlog.start()
        self.uploads.clean()
        self.queue.clock = self.clock
        self.outbox.refused = self.alerts.refused
        self._stack.push_async_callback(self.inbox.close)
        self._stack.push_async_callback(self.outbox.close)
        self._stack.push_async_callback(self.queue.close)
        self._stack.push_async_callback(self.arrivals.close)
        await self.library.upkeep.begin()
        if not self._serve:
            return
        await self.outbox.recover()
        await self.arrivals.recover()
        await self.queue.recover()
        await self.inbox.recover()

    async def _keep_index(self) -> None:
        """The rest of a new index, the files that changed, and those that change from now on, while answers go on."""
        try:
            await self.library.upkeep.settle(files=not self._serve)
            if self._serve:
                self._run(self.watcher.run())
                await self.watcher.compared.wait()
            await self.brain.warm()
        except (StoreError, ToolFailure, OSError) as error:
            LOG.error("the index is not up to date: %s", error)
        await self.library.upkeep.watch()

    async def _keep_marks(self) -> None:
        while True:
            await asyncio.sleep(READLOG_MARK_SECONDS)
            try:
                await self.readlog.mark()
            except (StoreError, OSError) as error:
                # A mark only spares the next start some reading.
                LOG.warning("the read logs were not marked: %s", error)

    def _run(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Takes nothing more, ends what runs in a few seconds, writes what is to be written, lets the home go."""
        self.health.ready = False
        await self._end()

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._stack.aclose()

    def new_link(self) -> str | None:
        """A fresh address of the page with its one-time code, None when the page is off."""
        page = self._page
        return None if self.server is None or page is None else f"{self.server.address}{page.new_link()}"
