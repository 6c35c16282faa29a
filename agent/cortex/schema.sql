-- The derived index. `idx` is the name under which the writer attaches index.db.

-- name: create-meta
CREATE TABLE IF NOT EXISTS idx.meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID

-- name: create-record
-- One message, one tool call, one section of a file. `owner` and the three numbers make the reference:
-- messages: n; calls: n.part; sections: lines n to last.
CREATE TABLE IF NOT EXISTS idx.record (
    id INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    owner TEXT NOT NULL,
    n INTEGER NOT NULL,
    part INTEGER NOT NULL,
    last INTEGER NOT NULL,
    at INTEGER NOT NULL,
    session_key TEXT NOT NULL,
    channel TEXT NOT NULL,
    chat TEXT NOT NULL,
    role TEXT NOT NULL,
    sender TEXT NOT NULL,
    sender_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    context TEXT NOT NULL,
    title TEXT NOT NULL,
    searched INTEGER NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (owner, n, part)
)

-- name: create-words
-- text: tokens in order; extra: stems, parts, wholes; head: sender or title; scope: the session, for filters.
-- The tokens come folded, so the tokenizer has nothing to do but to cut at blanks.
CREATE VIRTUAL TABLE IF NOT EXISTS idx.words USING fts5 (text, extra, head, scope, content='', tokenize='ascii')

-- name: create-conversation
CREATE TABLE IF NOT EXISTS idx.conversation (
    owner TEXT PRIMARY KEY,
    session_key TEXT NOT NULL,
    channel TEXT NOT NULL,
    chat TEXT NOT NULL,
    records INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL
) WITHOUT ROWID

-- name: create-file
CREATE TABLE IF NOT EXISTS idx.file (
    path TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    mtime_ns INTEGER NOT NULL,
    size INTEGER NOT NULL,
    at INTEGER NOT NULL,
    records INTEGER NOT NULL,
    fault TEXT NOT NULL
) WITHOUT ROWID

-- name: create-file-faults
CREATE INDEX IF NOT EXISTS idx.file_faults ON file (path) WHERE fault <> ''

-- name: create-origin
-- The conversations of an artifact: which message brought it, which calls made (rank 0) or named it (rank 1).
CREATE TABLE IF NOT EXISTS idx.origin (
    path TEXT NOT NULL,
    owner TEXT NOT NULL,
    n INTEGER NOT NULL,
    part INTEGER NOT NULL,
    tool TEXT NOT NULL,
    rank INTEGER NOT NULL,
    PRIMARY KEY (path, owner, n, part)
) WITHOUT ROWID

-- name: create-origin-by-record
CREATE INDEX IF NOT EXISTS idx.origin_by_record ON origin (owner, n, part)
