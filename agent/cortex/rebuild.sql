-- Sentences for an index that is being built, attached as `idx`.

-- name: newest-id
SELECT ifnull(max(id), 0) FROM idx.record

-- name: files
SELECT path, mtime_ns + size FROM idx.file

-- name: insert-records
-- Rows of all columns, the id first, follow.
INSERT INTO idx.record (id, source, owner, n, part, last, at, session_key, channel, chat, role, sender, sender_id,
    message_id, context, title, searched, body)
VALUES

-- name: insert-words
-- Rows follow.
INSERT INTO idx.words (rowid, text, extra, head, scope)
VALUES

-- name: collect-more
INSERT INTO idx.words (words, rank) VALUES ('hashsize', ?)

-- name: merge-later
INSERT INTO idx.words (words, rank) VALUES ('automerge', 0)

-- name: merge-as-usual
INSERT INTO idx.words (words, rank) VALUES ('automerge', 4)

-- name: merge-all
INSERT INTO idx.words (words) VALUES ('optimize')
