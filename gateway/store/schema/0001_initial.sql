-- Times are UTC, in milliseconds since 1970. JSON columns hold arrays or objects, NULL when empty.

CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE conversation (
  id TEXT PRIMARY KEY,
  session_key TEXT NOT NULL,
  channel TEXT NOT NULL,
  chat TEXT NOT NULL,
  thread TEXT,
  title TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  ended_at INTEGER,
  message_count INTEGER NOT NULL DEFAULT 0,
  last_text TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE INDEX conversation_session ON conversation (session_key, created_at);
CREATE INDEX conversation_updated ON conversation (updated_at);

-- One row a message, people's and the agent's. `version` grows with every change of any row: the index and the
-- event stream catch up by it. `n` is NULL for what is a log line only (edits, reactions).
CREATE TABLE message (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES conversation (id),
  n INTEGER,
  session_key TEXT NOT NULL,
  channel TEXT NOT NULL,
  chat TEXT NOT NULL,
  thread TEXT,
  message_id TEXT NOT NULL,
  dedupe_key TEXT,
  role TEXT NOT NULL,
  kind TEXT NOT NULL,
  sender_id TEXT NOT NULL,
  sender_name TEXT NOT NULL,
  rights TEXT NOT NULL,
  origin TEXT NOT NULL,
  text TEXT NOT NULL,
  original_text TEXT,
  at INTEGER NOT NULL,
  saved_at INTEGER NOT NULL,
  state TEXT NOT NULL,
  command TEXT,
  turn_id TEXT,
  round INTEGER NOT NULL DEFAULT 0,
  rounds TEXT,
  call_count INTEGER NOT NULL DEFAULT 0,
  reply_to TEXT,
  edits TEXT,
  forwarded_from TEXT,
  attachments TEXT,
  flags TEXT,
  answer_to TEXT
);
CREATE UNIQUE INDEX message_dedupe ON message (channel, dedupe_key) WHERE dedupe_key IS NOT NULL;
CREATE UNIQUE INDEX message_number ON message (conversation_id, n) WHERE n IS NOT NULL;
CREATE UNIQUE INDEX message_version ON message (version);
CREATE INDEX message_open ON message (session_key, seq) WHERE state IN ('waiting', 'running');
CREATE INDEX message_turn ON message (turn_id) WHERE turn_id IS NOT NULL;

CREATE TABLE turn (
  id TEXT PRIMARY KEY,
  session_key TEXT NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES conversation (id),
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  reply_seq INTEGER REFERENCES message (seq),
  error TEXT,
  input_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX turn_running ON turn (session_key) WHERE state = 'running';

CREATE TABLE tool_call (
  message_seq INTEGER NOT NULL REFERENCES message (seq),
  n INTEGER NOT NULL,
  round INTEGER NOT NULL,
  call_id TEXT NOT NULL,
  name TEXT NOT NULL,
  args TEXT NOT NULL,
  fault TEXT,
  output TEXT,
  outcome TEXT,
  attempts INTEGER,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  PRIMARY KEY (message_seq, n)
) WITHOUT ROWID;

-- One row a logical reply, written with the turn's result.
CREATE TABLE delivery (
  key TEXT PRIMARY KEY,
  message_seq INTEGER NOT NULL REFERENCES message (seq),
  channel TEXT NOT NULL,
  chat TEXT NOT NULL,
  thread TEXT,
  reply_to TEXT,
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  next_at INTEGER,
  sent_ids TEXT,
  reason TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX delivery_open ON delivery (created_at) WHERE state IN ('planned', 'sending', 'retry', 'unknown', 'failed');
CREATE INDEX delivery_message ON delivery (message_seq);

-- The lines of the read logs, in order: a message that was heard, or one that was sent.
CREATE TABLE log_entry (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  channel TEXT NOT NULL,
  chat TEXT NOT NULL,
  message_seq INTEGER NOT NULL REFERENCES message (seq),
  delivery_key TEXT REFERENCES delivery (key)
);
CREATE INDEX log_entry_chat ON log_entry (channel, chat, seq);

-- Up to which entry a chat's file is known to be on disk, and how long the file was then.
CREATE TABLE readlog_mark (
  channel TEXT NOT NULL,
  chat TEXT NOT NULL,
  seq INTEGER NOT NULL,
  size_bytes INTEGER NOT NULL,
  PRIMARY KEY (channel, chat)
) WITHOUT ROWID;

CREATE TABLE channel_fact (
  channel TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (channel, key)
) WITHOUT ROWID;

-- A chat that the platform gave a new id.
CREATE TABLE chat_move (
  channel TEXT NOT NULL,
  old_chat TEXT NOT NULL,
  new_chat TEXT NOT NULL,
  PRIMARY KEY (channel, old_chat)
) WITHOUT ROWID;

-- One row a due time of a scheduled job.
CREATE TABLE run (
  job TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  started_at INTEGER,
  ended_at INTEGER,
  outcome TEXT,
  late_seconds REAL NOT NULL DEFAULT 0,
  reason TEXT,
  conversation_id TEXT,
  PRIMARY KEY (job, due_at)
) WITHOUT ROWID;
CREATE INDEX run_due ON run (due_at);

-- When a job was first seen with its timing: intervals count from there.
CREATE TABLE job_seen (
  kind TEXT NOT NULL,
  job TEXT NOT NULL,
  timing TEXT NOT NULL,
  first_seen_at INTEGER NOT NULL,
  PRIMARY KEY (kind, job)
) WITHOUT ROWID;

-- One row a model call that was answered; `cost_usd` is NULL when nobody knows the price.
CREATE TABLE usage (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cache_read_tokens INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  cost_usd REAL,
  turn_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  origin TEXT NOT NULL
);
CREATE INDEX usage_at ON usage (at);
