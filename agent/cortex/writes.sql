-- Sentences of the writer's connection, on which the index is attached as `idx`.

-- name: get-meta
SELECT value FROM idx.meta WHERE key = ?

-- name: set-meta
INSERT INTO idx.meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value

-- name: list-tables
SELECT name FROM idx.sqlite_master WHERE type = 'table' AND sql IS NOT NULL AND name NOT LIKE 'sqlite%'
ORDER BY name LIKE 'words%', length(name)

-- name: insert-record
INSERT INTO idx.record (source, owner, n, part, last, at, session_key, channel, chat, role, sender, sender_id,
    message_id, context, title, searched, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (owner, n, part) DO NOTHING

-- name: insert-words
INSERT INTO idx.words (rowid, text, extra, head, scope) VALUES (?, ?, ?, ?, ?)

-- name: delete-words
INSERT INTO idx.words (words, rowid, text, extra, head, scope) VALUES ('delete', ?, ?, ?, ?, ?)

-- name: record-of-ref
SELECT id, session_key, sender, sender_id, title, searched, body FROM idx.record WHERE owner = ? AND n = ? AND part = ?

-- name: records-of-owner
SELECT id, session_key, sender, sender_id, title, searched, body FROM idx.record WHERE owner = ?

-- name: records-of-message
SELECT id, session_key, sender, sender_id, title, searched, body FROM idx.record WHERE owner = ? AND n = ?

-- name: delete-record
DELETE FROM idx.record WHERE id = ?

-- name: count-conversation
INSERT INTO idx.conversation (owner, session_key, channel, chat, records, first_at, last_at)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (owner) DO UPDATE SET
    records = records + excluded.records, first_at = min(first_at, excluded.first_at), last_at = max(last_at, excluded.last_at)

-- name: recount-conversation
UPDATE idx.conversation SET (records, first_at, last_at) =
    (SELECT count(*), ifnull(min(at), 0), ifnull(max(at), 0) FROM idx.record WHERE record.owner = conversation.owner)
WHERE owner = ?

-- name: drop-empty-conversation
DELETE FROM idx.conversation WHERE owner = ? AND records = 0

-- name: some-records-of-owner
SELECT id, session_key, sender, sender_id, title, searched, body FROM idx.record WHERE owner = ? LIMIT ?

-- name: places-of-owner
SELECT n FROM idx.record WHERE owner = ?

-- name: date-records
UPDATE idx.record SET at = :at WHERE owner = :owner AND at <> :at

-- name: artifacts-with-origin
SELECT DISTINCT origin.path FROM idx.origin JOIN idx.file ON file.path = origin.path

-- name: artifact-of-path
SELECT owner, n, part, last, at, title, body FROM idx.record WHERE owner = ? AND n = 0 AND part = 0

-- name: begin-file
-- With a time that no file has: what is cut short is done again.
INSERT INTO idx.file (path, source, mtime_ns, size, at, records, fault) VALUES (?, ?, 0, -1, ?, 0, '')
ON CONFLICT (path) DO UPDATE SET size = -1

-- name: put-file
INSERT INTO idx.file (path, source, mtime_ns, size, at, records, fault) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (path) DO UPDATE SET source = excluded.source, mtime_ns = excluded.mtime_ns, size = excluded.size,
    at = excluded.at, records = excluded.records, fault = excluded.fault

-- name: delete-file
DELETE FROM idx.file WHERE path = ?
