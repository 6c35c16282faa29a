-- A heartbeat job and a procedure may have the same name: the kind belongs to the key. `by_hand`: the clock did not
-- start it, so it counts against no daily limit.
CREATE TABLE run_by_kind (
  kind TEXT NOT NULL,
  job TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER,
  outcome TEXT,
  late_seconds REAL NOT NULL DEFAULT 0,
  reason TEXT,
  conversation_id TEXT,
  by_hand INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (kind, job, due_at)
) WITHOUT ROWID;
INSERT INTO run_by_kind (kind, job, due_at, started_at, ended_at, outcome, late_seconds, reason, conversation_id)
  SELECT kind, job, due_at, started_at, ended_at, outcome, late_seconds, reason, conversation_id FROM run;
DROP TABLE run;
ALTER TABLE run_by_kind RENAME TO run;
CREATE INDEX run_due ON run (due_at);
CREATE INDEX run_started ON run (started_at) WHERE started_at IS NOT NULL;
CREATE INDEX run_conversation ON run (conversation_id) WHERE conversation_id IS NOT NULL;
CREATE INDEX run_open ON run (kind) WHERE outcome IS NULL;
CREATE INDEX usage_conversation ON usage (conversation_id);

-- Jobs that the owner has switched off without touching their file.
CREATE TABLE job_off (
  kind TEXT NOT NULL,
  job TEXT NOT NULL,
  PRIMARY KEY (kind, job)
) WITHOUT ROWID;

-- The words of jobs to their owner: what was said last (an equal one within a day is counted, not sent), and what
-- quiet hours hold back until `release_at`.
CREATE TABLE alert (
  turn_id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  job TEXT NOT NULL,
  channel TEXT NOT NULL,
  chat TEXT NOT NULL,
  thread TEXT,
  text TEXT NOT NULL,
  same TEXT NOT NULL,
  at INTEGER NOT NULL,
  repeats INTEGER NOT NULL DEFAULT 0,
  release_at INTEGER
) WITHOUT ROWID;
CREATE INDEX alert_job ON alert (kind, job, at);
CREATE INDEX alert_held ON alert (release_at) WHERE release_at IS NOT NULL;
