-- Sentences of the check: the index is attached as `idx` to an empty database.

-- name: attach
ATTACH DATABASE ? AS idx

-- name: full-text-tables
SELECT name, sql FROM idx.sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%fts5%'

-- name: probe
SELECT rowid FROM idx.words WHERE words MATCH 'a' ORDER BY rank LIMIT 1

-- name: conversations-miscounted
SELECT (SELECT count(*) FROM idx.record WHERE owner >= 'conversation:' AND owner < 'conversation;')
    <> (SELECT ifnull(sum(records), 0) FROM idx.conversation)

-- name: files-miscounted
SELECT (SELECT count(*) FROM idx.record WHERE owner >= 'file:' AND owner < 'file;')
    <> (SELECT ifnull(sum(records), 0) FROM idx.file)

-- name: records-without-words
SELECT count(*) FROM idx.record WHERE id NOT IN (SELECT id FROM idx.words_docsize)

-- name: words-without-record
SELECT count(*) FROM idx.words_docsize WHERE id NOT IN (SELECT id FROM idx.record)

-- name: pages
PRAGMA idx.quick_check(5)

-- name: meta
SELECT key, value FROM meta

-- name: records-by-source
SELECT 'conversation', sum(records) FROM conversation HAVING sum(records) > 0
UNION ALL SELECT source, sum(records) FROM file GROUP BY source

-- name: count-files
SELECT count(*) FROM file

-- name: count-messages
SELECT count(*) FROM record WHERE owner >= 'conversation:' AND owner < 'conversation;' AND part = 0
