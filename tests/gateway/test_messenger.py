"""Messages a tool sends: to known people only, each once."""

from __future__ import annotations

from pathlib import Path

from channels.channel import SendRefused, SendRetry, SendUnknown
from gateway.messenger import Messenger
from gateway.people import People
from tests.fakes.hub import GUEST, OWNER, Hub, hub, utc_now


def messenger(core: Hub, wait_seconds: float = 5.0) -> Messenger:
    people = People(core.settings)
    return Messenger(
        core.store, core.outbox, core.channels, people, core.home / "workspace", utc_now, wait_seconds=wait_seconds
    )


async def test_only_known_people_can_be_written_to(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        await core.say("hi", chat="99", sender="99", sender_name="Stranger")
        await core.say("hi", chat=GUEST, sender=GUEST, sender_name="Sana")
        await core.quiet()
        known = {one.address: one.names for one in await messenger(core).recipients()}
        assert known == {"inapp:home": ("owner",), f"telegram:{OWNER}": ("owner",), f"telegram:{GUEST}": ("Sana",)}


async def test_the_same_key_is_sent_once(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        first = await messenger(core).send("send:t:c", f"telegram:{GUEST}", "hello")
        again = await messenger(core).send("send:t:c", f"telegram:{GUEST}", "hello")
        assert (first.state, again.state) == ("sent", "sent")
        assert core.channel.texts == ["hello"]
        await core.quiet()
        assert [line["text"] for line in core.log(GUEST)] == ["hello"]


async def test_what_became_of_it_is_told_honestly(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        core.channel.outcomes.extend(
            [SendUnknown("the line broke"), SendRefused("blocked"), SendRetry("x", after_seconds=60)]
        )
        states = [
            (await messenger(core, 0.2).send(f"send:t:{n}", f"telegram:{GUEST}", "hello")).state for n in range(3)
        ]
        assert states == ["unknown", "failed", "waiting"]


async def test_a_message_on_the_page_is_there_at_once(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        sent = await messenger(core).send("send:t:c", "inapp:home", "hello")
        assert sent.state == "sent"
        assert [message.role for message in await core.messages("home")] == ["assistant"]
