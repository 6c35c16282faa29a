"""Finds records that mean what was asked. It keeps a vector for each message and section in vectors.db, made in the
background; without the setting none of this is imported.

All of it runs in one thread of its own, so that making vectors and asking for them never meet.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import sqlite3
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from agent.cortex.embedding import Embedder
from agent.cortex.sentences import sentences
from agent.cortex.text import clean

T = TypeVar("T")
_log = logging.getLogger(__name__)

EMBEDDED_CHARS = 1_200
"""So much of a text makes its vector: about what the bundled model reads at once."""
BATCH_RECORDS = 16
ROWS_A_PRODUCT = 16_384
"""Vectors are kept as bytes and multiplied as floats, so many at a time: it bounds the memory of a search."""
NEIGHBOURS = 2
NEIGHBOUR_SHARE = 0.8
"""The best of so many messages on both sides counts too, for so much: talk is about one thing for a while."""
SCORE_DEVIATIONS = 6.0
"""A record that lies so many standard deviations above the middle of all records has the score 1."""
MAD_DEVIATION = 1.4826
"""The standard deviation of normal values over the median of their deviations from the median."""
REST_SHARE = 1.0
"""After each batch it rests for as long as that took, so that half a core is the most it uses."""
BEST_RECORDS = 400
"""So many records are found by meaning alone; the others have a score for when they are found by words."""
LOOK_SECONDS = 5.0
TIDY_SECONDS = 3_600.0
RECHECKED_RECORDS = 64
"""The newest so many are always looked at again: an edited record may get the number of the one it replaces."""

_SQL = sentences("vectors.sql")


class Meaning:
    """Vectors of one index. `open` first; `run` keeps them up to date until it is cancelled."""

    def __init__(self, path: Path, index: Path, make: Callable[[], Embedder]) -> None:
        self._path = path
        self._index = index
        self._make = make
        self._embedder: Embedder | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._conn: sqlite3.Connection | None = None
        self._index_id: tuple[int, int] | None = None
        self._looked_up_to = self._loaded_up_to = 0
        self._known = Known()

    async def open(self) -> None:
        """Loads the model and the vectors there are; damaged ones are made anew. Raises EmbeddingError, OSError."""
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="meaning")
        await self._in_thread(self._open)

    async def close(self) -> None:
        """Waits for the batch under way."""
        if self._thread is not None:
            await self._in_thread(self._close)
            self._thread.shutdown()
            self._thread = None

    async def run(self, is_complete: Callable[[], bool]) -> None:
        """Makes vectors for what is new, a batch at a time with a rest after each, for ever.

        `is_complete` says whether everything is in the index: only then a vector without a record is old.
        """
        tidied_at = -math.inf
        while True:
            loop = asyncio.get_running_loop()
            begun = loop.time()
            try:
                made = await self.update(BATCH_RECORDS)
                if not made and begun > tidied_at + TIDY_SECONDS and is_complete():
                    await self.forget_gone()
                    tidied_at = begun
            except sqlite3.DatabaseError as error:
                # The index is being replaced or mended; its vectors can wait.
                _log.warning("no vectors were made: %s", error)
                made = 0
            await asyncio.sleep(REST_SHARE * (loop.time() - begun) if made else LOOK_SECONDS)

    async def update(self, records_max: int | None = None) -> int:
        """Makes vectors of the newest records that have none, of all when `records_max` is None; how many."""
        made = 0
        while records_max is None or made < records_max:
            batch = await self._in_thread(self._embed_batch)
            made += batch
            if batch < BATCH_RECORDS:
                break
        return made

    async def forget_gone(self) -> None:
        """Drops the vectors of what is not in the index; only for one that is complete."""
        await self._in_thread(self._forget_gone)

    async def scores(self, query: str) -> Mapping[int, float]:
        """How near records are to a text by meaning (see `Scores`); empty while there are no vectors."""
        try:
            return await self._in_thread(lambda: self._scores(query))
        except sqlite3.DatabaseError as error:
            # The index is being replaced or mended: words are enough to answer.
            _log.warning("searched by words alone: %s", error)
            return {}

    def _open(self) -> None:
        self._embedder = self._make()
        try:
            self._conn = self._connect(self._embedder.name)
        except sqlite3.DatabaseError as error:
            _log.warning("%s is damaged (%s): the vectors are made anew", self._path, error)
            for ending in ("", "-wal", "-shm"):
                self._path.with_name(self._path.name + ending).unlink(missing_ok=True)
            self._conn = self._connect(self._embedder.name)

    def _connect(self, model_name: str) -> sqlite3.Connection:
        conn = sqlite3.connect(self._path, isolation_level=None)
        try:
            conn.execute("PRAGMA journal_mode = WAL").fetchone()
            conn.execute("PRAGMA synchronous = NORMAL")
            conn.create_function("mark_of", 1, _mark, deterministic=True)
            conn.execute(_SQL["create-meta"])
            conn.execute(_SQL["create-vector"])
            model = conn.execute(_SQL["model"]).fetchone()
            if model is None or model[0] != model_name:
                conn.execute(_SQL["drop-all"])
                conn.execute(_SQL["set-model"], (model_name,))
        except sqlite3.Error:
            conn.close()
            raise
        return conn

    def _close(self) -> None:
        if self._conn is not None:
            self._conn.close()
        self._conn = self._embedder = None

    def _attach(self) -> bool:
        """Looks at the index as it is now; False while there is none."""
        assert self._conn is not None
        try:
            stat = os.stat(self._index)
        except FileNotFoundError:
            return False
        if self._index_id == (stat.st_dev, stat.st_ino):
            return True
        if self._index_id is not None:
            self._conn.execute(_SQL["detach-index"])
            self._index_id = None
        self._conn.execute(_SQL["attach-index"], (str(self._index),))
        self._index_id = (stat.st_dev, stat.st_ino)
        self._looked_up_to = 0
        self._known, self._loaded_up_to = Known(), 0
        return True

    def _load(self) -> None:
        """Takes in the vectors of records that came into the index with theirs made before."""
        assert self._conn is not None
        newest = self._conn.execute(_SQL["newest"]).fetchone()[0]
        if newest > self._loaded_up_to:
            self._known.add(self._conn.execute(_SQL["known"], (self._loaded_up_to,)).fetchall())
            self._loaded_up_to = newest

    def _embed_batch(self) -> int:
        """The next batch of records without a vector; how many there were."""
        if not self._attach():
            return 0
        assert self._conn is not None
        assert self._embedder is not None
        newest = self._conn.execute(_SQL["newest"]).fetchone()[0]
        rows = self._conn.execute(_SQL["pending"], (self._looked_up_to, BATCH_RECORDS)).fetchall()
        if len(rows) < BATCH_RECORDS:
            self._looked_up_to = max(0, newest - RECHECKED_RECORDS)
        if not rows:
            return 0
        vectors = _bytes(self._embedder.passages([_text(*row[4:]) for row in rows]))
        self._conn.execute("BEGIN IMMEDIATE")
        try:
            for (_, owner, n, part, _, _, body), vector in zip(rows, vectors, strict=True):
                self._conn.execute(_SQL["put"], (owner, n, part, _mark(body), vector.tobytes()))
        except sqlite3.Error:
            self._conn.execute("ROLLBACK")
            raise
        self._conn.execute("COMMIT")
        self._known.add([(row[0], row[1], row[2], vector.tobytes()) for row, vector in zip(rows, vectors, strict=True)])
        return len(rows)

    def _forget_gone(self) -> None:
        if self._attach():
            assert self._conn is not None
            self._conn.execute(_SQL["forget-gone"])

    def _scores(self, query: str) -> Mapping[int, float]:
        if not self._attach() or not query.strip():
            return {}
        self._load()
        if not len(self._known):
            return {}
        assert self._embedder is not None
        return self._known.scores(self._embedder.questions([clean(query[:EMBEDDED_CHARS])])[0])

    def _in_thread(self, work: Callable[[], T]) -> Awaitable[T]:
        assert self._thread is not None, "open it first"
        return asyncio.get_running_loop().run_in_executor(self._thread, work)


class Scores(Mapping[int, float]):
    """Scores of 0 to 1 by record id. Every record with a vector has one; only the BEST_RECORDS are listed."""

    def __init__(self, ids: NDArray[np.int64], scores: NDArray[np.floating]) -> None:
        self._scores = scores
        self._order = np.argsort(ids)
        self._ids = ids[self._order]
        best = min(BEST_RECORDS, len(ids))
        self._best = ids[np.argpartition(-scores, best - 1)[:best]]

    def __getitem__(self, id: int) -> float:
        at = int(np.searchsorted(self._ids, id))
        if at == len(self._ids) or self._ids[at] != id:
            raise KeyError(id)
        return float(self._scores[self._order[at]])

    def __iter__(self) -> Iterator[int]:
        return (int(id_) for id_ in self._best)

    def __len__(self) -> int:
        return len(self._best)


class Known:
    """The vectors of an index in memory, in the order of conversations and messages."""

    def __init__(self) -> None:
        self._ids: NDArray[np.int64] = np.empty(0, np.int64)
        self._places: NDArray[np.int64] = np.empty((0, 2), np.int64)
        self._vectors: NDArray[np.int8] = np.empty((0, 0), np.int8)
        self._owners: dict[str, int] = {}
        self._is_sorted = True

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, rows: Sequence[tuple[int, str, int, bytes]]) -> None:
        """Takes in id, owner, number and vector of records; a known id gets the new one."""
        if not rows:
            return
        ids = np.array([row[0] for row in rows], np.int64)
        owners = [self._owners.setdefault(row[1], len(self._owners)) for row in rows]
        places = np.array([owners, [row[2] for row in rows]], np.int64).T
        vectors = np.frombuffer(b"".join(row[3] for row in rows), np.int8).reshape(len(rows), -1)
        kept = ~np.isin(self._ids, ids)
        self._ids = np.concatenate([self._ids[kept], ids])
        self._places = np.concatenate([self._places[kept], places])
        known = self._vectors.reshape(len(kept), vectors.shape[1])
        self._vectors = np.concatenate([known[kept], vectors])
        self._is_sorted = False

    def scores(self, question: NDArray[np.float32]) -> Scores:
        """How near each record is to a vector."""
        self._sort()
        worth = self._with_neighbours(self._cosines(question / np.float32(127)))
        middle = np.median(worth)
        # The median of the deviations, not their mean square: in a small home the one that fits would hide itself.
        spread = MAD_DEVIATION * float(np.median(np.abs(worth - middle))) or 1.0
        return Scores(self._ids, np.clip((worth - middle) / (SCORE_DEVIATIONS * spread), 0.0, 1.0))

    def _sort(self) -> None:
        if not self._is_sorted:
            order = np.lexsort((self._places[:, 1], self._places[:, 0]))
            self._ids, self._places, self._vectors = self._ids[order], self._places[order], self._vectors[order]
            self._is_sorted = True

    def _cosines(self, question: NDArray[np.float32]) -> NDArray[np.float32]:
        parts = range(0, len(self._ids), ROWS_A_PRODUCT)
        return np.concatenate([self._vectors[at : at + ROWS_A_PRODUCT].astype(np.float32) @ question for at in parts])

    def _with_neighbours(self, cosines: NDArray[np.float32]) -> NDArray[np.floating]:
        near = np.full_like(cosines, cosines.min())
        for step in range(1, NEIGHBOURS + 1):
            if step >= len(cosines):
                break
            apart = self._places[step:] - self._places[:-step]
            joined = (apart[:, 0] == 0) & (apart[:, 1] <= NEIGHBOURS)
            near[step:] = np.where(joined, np.maximum(near[step:], cosines[:-step]), near[step:])
            near[:-step] = np.where(joined, np.maximum(near[:-step], cosines[step:]), near[:-step])
        return cosines + np.float32(NEIGHBOUR_SHARE) * near


def _text(sender: str, title: str, body: str) -> str:
    head = sender or title
    text = f"{head}: {body}" if head else body
    return text[:EMBEDDED_CHARS]


def _bytes(vectors: Any) -> NDArray[np.int8]:
    """Unit vectors as signed bytes; the cosine changes by less than a hundredth."""
    return np.clip(np.rint(vectors * 127.0), -127, 127).astype(np.int8)


def _mark(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))
