-- People who were let in with `hudhud people`, besides those in the settings.
CREATE TABLE person (
  channel TEXT NOT NULL,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  since INTEGER NOT NULL,
  PRIMARY KEY (channel, id)
) WITHOUT ROWID;

-- Codes that strangers were given and the owner has not typed yet.
CREATE TABLE pairing (
  code TEXT PRIMARY KEY,
  channel TEXT NOT NULL,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;

-- What a message quotes: {"text", "sender_name", "is_own"}.
ALTER TABLE message ADD COLUMN quote TEXT;

-- The live draft of a running turn's answer: [channel, chat, thread, platform id or null while it is on its way].
ALTER TABLE turn ADD COLUMN draft TEXT;

-- The platform id of the message whose place the delivery takes.
ALTER TABLE delivery ADD COLUMN replaces TEXT;
