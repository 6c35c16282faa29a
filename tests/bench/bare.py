"""The libraries with no work of ours, as a program: what a gateway of these parts costs at least.

aiohttp answers `/readyz`, takes posted messages and tells of a reply by a server-sent event; python-telegram-bot, over
aiohttp too, polls a Bot API and answers each text. Nothing is saved, no model is asked.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
from typing import Any

import aiohttp
from aiohttp import web
from telegram import Bot
from telegram.request import BaseRequest, RequestData

from tests.fakes.bot_api import TOKEN as BOT_TOKEN

REPLY = "An answer that was there at once."


class Request(BaseRequest):
    """JSON over one session."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    @property
    def read_timeout(self) -> float | None:
        return 30.0

    async def initialize(self) -> None:
        self._session = self._session or aiohttp.ClientSession()

    async def shutdown(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def do_request(
        self, url: str, method: str, request_data: RequestData | None = None, *_: Any, **__: Any
    ) -> tuple[int, bytes]:
        assert self._session is not None
        body = json.dumps(request_data.parameters if request_data else {}).encode()
        async with self._session.post(url, data=body) as response:
            return response.status, await response.read()


async def _poll(base_url: str) -> None:
    bot = Bot(BOT_TOKEN, base_url=f"{base_url}/bot", request=Request(), get_updates_request=Request())
    async with bot:
        offset = 0
        sends: set[asyncio.Task[Any]] = set()
        while True:
            for update in await bot.get_updates(offset, timeout=30):
                offset = update.update_id + 1
                if update.message is not None:
                    task = asyncio.create_task(bot.send_message(update.message.chat_id, REPLY))
                    sends.add(task)
                    task.add_done_callback(sends.discard)


class Page:
    """Post a message, hear of the reply."""

    def __init__(self) -> None:
        self._streams: set[web.StreamResponse] = set()

    async def ready(self, request: web.Request) -> web.Response:
        return web.json_response({"ready": True})

    async def post(self, request: web.Request) -> web.Response:
        body = await request.json()
        conversation = body["conversation"] if body.get("conversation") != "new" else body["key"]
        event = {"conversation": conversation, "turn": "1", "text": REPLY}
        for stream in self._streams:
            await stream.write(f"event: done\ndata: {json.dumps(event)}\n\n".encode())
        return web.json_response({"message_id": body["key"], "conversation": conversation}, status=202)

    async def events(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b": here\n\n")
        self._streams.add(response)
        try:
            await asyncio.Event().wait()
        finally:
            self._streams.discard(response)
        return response


async def _serve(port: int, base_url: str) -> None:
    page = Page()
    app = web.Application()
    app.add_routes(
        [
            web.get("/readyz", page.ready),
            web.post("/api/messages", page.post),
            web.get("/api/events", page.events),
        ]
    )
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    polling = asyncio.create_task(_poll(base_url))
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await stop.wait()
    polling.cancel()
    await asyncio.gather(polling, return_exceptions=True)
    await runner.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--telegram", required=True, metavar="URL", help="the root of a Bot API")
    options = parser.parse_args()
    asyncio.run(_serve(options.port, options.telegram))


if __name__ == "__main__":
    main()
