"""What every RunStore does. A subclass has a fixture `store` that gives an empty one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from heartbeat.types import RunStore

AT = datetime(2027, 1, 1, 8, 0, tzinfo=UTC)
LATER = AT + timedelta(hours=1)


class RunStoreContract:
    async def test_a_due_time_is_claimed_once(self, store: RunStore) -> None:
        assert await store.claim("a", "heartbeat", AT, 2.5, AT + timedelta(seconds=2.5))
        assert not await store.claim("a", "heartbeat", AT, 9.0, LATER)
        assert not await store.skip("a", "heartbeat", [AT], "missed", "down", LATER)
        assert await store.claim("a", "heartbeat", LATER, 0.0, LATER)
        assert await store.claim("b", "heartbeat", AT, 0.0, AT)
        first = (await store.history(10))[-1]
        assert (first.due_at, first.outcome, first.ended_at) == (AT, None, None)

    async def test_a_skipped_due_time_has_an_end_and_no_start(self, store: RunStore) -> None:
        assert await store.skip("a", "heartbeat", [AT], "skipped", "still running", LATER)
        assert not await store.skip("a", "heartbeat", [AT], "missed", "down", LATER)
        assert not await store.claim("a", "heartbeat", AT, 0.0, LATER)
        (run,) = await store.history(10)
        assert (run.outcome, run.reason, run.started_at, run.ended_at) == ("skipped", "still running", None, LATER)

    async def test_an_open_row_is_ended_once(self, store: RunStore) -> None:
        await store.claim("a", "heartbeat", AT, 2.5, AT + timedelta(seconds=2.5))
        assert [run.job for run in await store.unfinished("heartbeat")] == ["a"]
        run = await store.finish("a", "heartbeat", AT, "ok", "all well", "c1", LATER)
        assert run is not None
        assert (run.job, run.kind, run.due_at, run.late_seconds) == ("a", "heartbeat", AT, 2.5)
        assert (run.outcome, run.reason, run.conversation, run.ended_at) == ("ok", "all well", "c1", LATER)
        assert list(await store.history(1)) == [run]
        assert await store.finish("a", "heartbeat", AT, "error", "again", None, LATER) is None
        assert await store.finish("a", "heartbeat", LATER, "ok", "never claimed", None, LATER) is None
        assert list(await store.history(9)) == [run]
        assert not await store.unfinished("heartbeat")

    async def test_the_newest_due_times_come_first(self, store: RunStore) -> None:
        for hours in (2, 0, 1):
            await store.skip("a", "heartbeat", [AT + timedelta(hours=hours)], "missed", "", LATER)
        await store.skip("b", "heartbeat", [AT - timedelta(hours=1)], "missed", "", LATER)
        history = await store.history(3)
        assert [run.due_at for run in history] == [AT + timedelta(hours=hours) for hours in (2, 1, 0)]
        latest = await store.latest("heartbeat", AT + timedelta(hours=2))
        assert {job: run.due_at for job, run in latest.items()} == {
            "a": AT + timedelta(hours=2),
            "b": AT - timedelta(hours=1),
        }
        earlier = await store.latest("heartbeat", AT + timedelta(minutes=90))
        assert earlier["a"].due_at == AT + timedelta(hours=1)
        assert not await store.latest("procedure", LATER)

    async def test_first_seen_stays_until_the_timing_changes_or_the_job_goes(self, store: RunStore) -> None:
        assert await store.seen("heartbeat", {"a": "Daily (08:00)", "b": "Every (2h)"}, AT) == {"a": AT, "b": AT}
        assert await store.seen("heartbeat", {"a": "Daily (08:00)", "b": "Every (3h)"}, LATER) == {"a": AT, "b": LATER}
        assert await store.seen("heartbeat", {"b": "Every (3h)"}, LATER) == {"b": LATER}
        assert await store.seen("heartbeat", {"a": "Daily (08:00)"}, LATER) == {"a": LATER}

    async def test_one_kind_forgets_no_job_of_another(self, store: RunStore) -> None:
        await store.seen("heartbeat", {"a": "Daily (08:00)"}, AT)
        await store.seen("procedure", {}, LATER)
        assert await store.seen("heartbeat", {"a": "Daily (08:00)"}, LATER) == {"a": AT}

    async def test_jobs_of_two_kinds_may_share_a_name_and_a_due_time(self, store: RunStore) -> None:
        assert await store.claim("a", "heartbeat", AT, 0.0, AT)
        assert await store.claim("a", "procedure", AT, 0.0, AT)
        assert await store.finish("a", "procedure", AT, "ok", "done", None, LATER) is not None
        assert [run.kind for run in await store.unfinished("heartbeat")] == ["heartbeat"]
        assert not await store.unfinished("procedure")

    async def test_of_many_due_times_those_without_a_row_get_one(self, store: RunStore) -> None:
        assert await store.claim("a", "heartbeat", AT, 0.0, AT)
        assert list(await store.skip("a", "heartbeat", [AT, LATER], "missed", "down", LATER)) == [LATER]

    async def test_what_the_clock_started_itself_is_counted(self, store: RunStore) -> None:
        await store.claim("a", "heartbeat", AT, 0.0, AT)
        await store.claim("a", "heartbeat", LATER, 0.0, LATER, by_hand=True)
        await store.claim("b", "procedure", LATER, 0.0, LATER)
        await store.claim("c", "built-in", LATER, 0.0, LATER)
        await store.skip("d", "heartbeat", [LATER], "skipped", "no", LATER)
        assert await store.spent_since(AT) == (2, 0)
        assert await store.spent_since(LATER) == (1, 0)

    async def test_a_built_in_job_is_in_the_history_when_it_has_something_to_tell(self, store: RunStore) -> None:
        for due_at, note in ((AT, ""), (LATER, "3 files removed")):
            await store.claim("tidy", "built-in", due_at, 0.0, due_at)
            await store.finish("tidy", "built-in", due_at, "ok", note, None, due_at)
        assert [run.reason for run in await store.history(9)] == ["3 files removed"]
        assert (await store.latest("built-in", LATER))["tidy"].due_at == LATER

    async def test_a_job_is_switched_off_and_on(self, store: RunStore) -> None:
        await store.switch(("heartbeat", "a"), False)
        await store.switch(("heartbeat", "a"), False)
        await store.switch(("procedure", "a"), True)
        assert await store.switched_off() == {("heartbeat", "a")}
        await store.switch(("heartbeat", "a"), True)
        assert not await store.switched_off()
