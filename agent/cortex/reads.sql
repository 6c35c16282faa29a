-- Sentences of the readers' own connection to index.db. Who may see some sessions only sees what was said there, not the
-- calls of tools (part > 0): in a group those of the owner hold what is the owner's.

-- name: schema-version
SELECT value FROM meta WHERE key = 'schema_version'

-- name: table-names
SELECT name FROM sqlite_master

-- name: create-terms
CREATE VIRTUAL TABLE temp.terms USING fts5vocab (main, words, row)

-- name: records-holding
SELECT doc FROM temp.terms WHERE term = ?

-- name: newest-id
SELECT ifnull(max(id), 0) FROM record

-- name: best
SELECT rowid, bm25(words, 1.0, 1.0, 0.5, 0.0) AS score FROM words WHERE words MATCH :match
ORDER BY score, rowid DESC LIMIT :pool

-- name: best-filtered
SELECT words.rowid, bm25(words, 1.0, 1.0, 0.5, 0.0) AS score
FROM words JOIN record ON record.id = words.rowid
WHERE words MATCH :match
    AND (:sources IS NULL OR record.source IN (SELECT value FROM json_each(:sources)))
    AND (:sessions IS NULL OR record.part = 0 AND record.session_key IN (SELECT value FROM json_each(:sessions)))
    AND (:channel IS NULL OR record.channel = :channel)
    AND (:chat IS NULL OR record.chat = :chat)
    AND (:roles IS NULL OR record.role IN (SELECT value FROM json_each(:roles)))
    AND (:after IS NULL OR record.at >= :after)
    AND (:before IS NULL OR record.at < :before)
ORDER BY score, words.rowid DESC LIMIT :pool

-- name: newest-filtered
SELECT words.rowid, 0.0 AS score
FROM words JOIN record ON record.id = words.rowid
WHERE words MATCH :match
    AND (:sources IS NULL OR record.source IN (SELECT value FROM json_each(:sources)))
    AND (:sessions IS NULL OR record.part = 0 AND record.session_key IN (SELECT value FROM json_each(:sessions)))
    AND (:channel IS NULL OR record.channel = :channel)
    AND (:chat IS NULL OR record.chat = :chat)
    AND (:roles IS NULL OR record.role IN (SELECT value FROM json_each(:roles)))
    AND (:after IS NULL OR record.at >= :after)
    AND (:before IS NULL OR record.at < :before)
ORDER BY words.rowid DESC LIMIT :pool

-- name: of-day
-- Narrowed to what the days touch first: records have no index of their own by time.
SELECT record.id FROM record
WHERE record.owner IN (
        SELECT owner FROM conversation WHERE last_at >= :after AND first_at < :before
        UNION ALL SELECT 'file:' || path FROM file WHERE at >= :after AND at < :before)
    AND record.at >= :after AND record.at < :before
    AND (:sources IS NULL OR record.source IN (SELECT value FROM json_each(:sources)))
    AND (:sessions IS NULL OR record.part = 0 AND record.session_key IN (SELECT value FROM json_each(:sessions)))
ORDER BY CASE record.source WHEN 'episode' THEN 0 WHEN 'conversation' THEN 2 WHEN 'task' THEN 1 WHEN 'knowledge' THEN 1
    ELSE 3 END, record.part > 0, record.at, record.id
LIMIT :limit

-- name: newest-holding
SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?

-- name: records
SELECT id, source, owner, n, part, last, at, session_key, channel, chat, role, sender, sender_id, message_id,
    context, title, substr(body, 1, min(searched, :chars)), searched > :chars
FROM record WHERE id IN (SELECT value FROM json_each(:ids))

-- name: records-around
SELECT id, source, owner, n, part, last, at, session_key, channel, chat, role, sender, sender_id, message_id,
    context, title, substr(body, 1, min(searched, :chars)), searched > :chars
FROM record WHERE id IN (
    SELECT near.id FROM json_each(:ids) AS wanted
    JOIN record AS hit ON hit.id = wanted.value
    JOIN record AS near ON near.owner = hit.owner AND near.n BETWEEN hit.n - :reach AND hit.n + :reach
    WHERE near.part = 0 AND hit.part = 0 AND hit.source = 'conversation')

-- name: body
SELECT body FROM record WHERE id = ?

-- name: record-of-ref
SELECT id, source, owner, n, part, last, at, session_key, channel, chat, role, sender, sender_id, message_id,
    context, title, body, 0
FROM record WHERE owner = :owner AND n = :n AND part = :part
    AND (:sessions IS NULL OR part = 0 AND session_key IN (SELECT value FROM json_each(:sessions)))

-- name: records-of-owner
SELECT id, source, owner, n, part, last, at, session_key, channel, chat, role, sender, sender_id, message_id,
    context, title, body, 0
FROM record WHERE owner = :owner
    AND (:sessions IS NULL OR part = 0 AND session_key IN (SELECT value FROM json_each(:sessions)))
ORDER BY n, part LIMIT :limit

-- name: conversations-covered
SELECT count(*), ifnull(sum(records), 0), min(first_at), max(last_at) FROM conversation
WHERE :sessions IS NULL OR session_key IN (SELECT value FROM json_each(:sessions))

-- name: sessions-of-chat
SELECT DISTINCT session_key FROM conversation WHERE chat = ?

-- name: files-covered
SELECT source, sum(records), min(at), max(at) FROM file GROUP BY source ORDER BY source

-- name: knowledge-headings
SELECT file.path, record.title FROM file JOIN record ON record.owner = 'file:' || file.path
WHERE file.source = 'knowledge' ORDER BY file.path, record.n LIMIT ?

-- name: files
SELECT path, mtime_ns + size FROM file

-- name: sections-of-owner
SELECT n, source, last, title, body FROM record WHERE owner = ?

-- name: faults
SELECT path, fault FROM file WHERE fault <> ''
