-- What the owner had removed: the row stays, without its text, so that numbers and de-duplication stay true.
ALTER TABLE message ADD COLUMN removed_at INTEGER;
ALTER TABLE conversation ADD COLUMN removed_at INTEGER;
CREATE INDEX log_entry_message ON log_entry (message_seq);
-- Log lines about an earlier message (edits, reactions) go with it.
CREATE INDEX message_about ON message (channel, chat, edits) WHERE edits IS NOT NULL;
