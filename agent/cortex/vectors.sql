-- vectors.db: a vector for each message and section, by reference, so that a new index finds them again.

-- name: create-meta
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID

-- name: create-vector
-- `vector`: one signed byte a dimension, 127 is 1. `mark`: what the text was when it was made.
CREATE TABLE IF NOT EXISTS vector (
    owner TEXT NOT NULL,
    n INTEGER NOT NULL,
    part INTEGER NOT NULL,
    mark INTEGER NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (owner, n, part)
) WITHOUT ROWID

-- name: model
SELECT value FROM meta WHERE key = 'model'

-- name: set-model
INSERT INTO meta (key, value) VALUES ('model', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value

-- name: drop-all
DELETE FROM vector

-- name: put
INSERT INTO vector (owner, n, part, mark, vector) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (owner, n, part) DO UPDATE SET mark = excluded.mark, vector = excluded.vector

-- name: attach-index
ATTACH DATABASE ? AS idx

-- name: detach-index
DETACH idx

-- name: pending
-- Records with words of people, agent or files that have no vector, newest first.
SELECT record.id, record.owner, record.n, record.part, record.sender, record.title, record.body
FROM idx.record LEFT JOIN vector USING (owner, n, part)
WHERE record.id > ? AND record.part = 0 AND record.searched > 0
    AND record.source IN ('conversation', 'episode', 'knowledge', 'consolidated', 'doc')
    AND (vector.owner IS NULL OR vector.mark <> mark_of(record.body))
ORDER BY record.id DESC LIMIT ?

-- name: known
SELECT record.id, record.owner, record.n, vector.vector FROM idx.record JOIN vector USING (owner, n, part)
WHERE record.id > ?

-- name: newest
SELECT ifnull(max(id), 0) FROM idx.record

-- name: forget-gone
DELETE FROM vector WHERE NOT EXISTS (
    SELECT 1 FROM idx.record WHERE record.owner = vector.owner AND record.n = vector.n AND record.part = vector.part)
