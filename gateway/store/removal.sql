-- name: removable_messages
SELECT * FROM message WHERE conversation_id = :conversation_id AND n IS NOT NULL AND removed_at IS NULL
  AND (:numbers IS NULL OR n IN (SELECT value FROM json_each(:numbers))) ORDER BY n LIMIT :limit

-- name: lines_about
SELECT * FROM message WHERE channel = :channel AND chat = :chat AND edits IN (SELECT value FROM json_each(:ids))
  AND n IS NULL AND removed_at IS NULL

-- name: copies_of_reply
SELECT message.* FROM delivery JOIN message ON message.seq = delivery.message_seq
WHERE delivery.key = :key AND message.seq <> :seq AND message.removed_at IS NULL

-- name: deliveries_of_message
SELECT key, channel, state, sent_ids FROM delivery WHERE message_seq = :message_seq

-- name: messages_in_use
-- An answer that broke off with the program has the state of a running one, but no message that runs with it.
SELECT n, channel, 'answered' AS used FROM message
WHERE session_key = (SELECT session_key FROM conversation WHERE id = :conversation_id)
  AND state IN ('waiting', 'running') AND state = 'running' AND conversation_id = :conversation_id
  AND (:numbers IS NULL OR n IN (SELECT value FROM json_each(:numbers)))
  AND (role = 'user' OR EXISTS (
    SELECT 1 FROM message AS asked WHERE asked.turn_id = message.turn_id AND asked.role = 'user' AND asked.state = 'running'))
UNION ALL
SELECT message.n, delivery.channel, 'sent' FROM delivery JOIN message ON message.seq = delivery.message_seq
WHERE delivery.state IN ('planned', 'sending', 'retry', 'unknown', 'failed')
  AND delivery.state IN ('planned', 'sending', 'retry') AND message.conversation_id = :conversation_id
  AND (:numbers IS NULL OR message.n IN (SELECT value FROM json_each(:numbers)))

-- name: blank_message
UPDATE message SET text = '', original_text = NULL, attachments = NULL, rounds = NULL, call_count = 0,
  forwarded_from = NULL, quote = NULL, flags = :flags, removed_at = :now, version = :version,
  state = CASE WHEN state IN ('waiting', 'running') THEN 'cancelled' ELSE state END WHERE seq = :seq

-- name: blank_calls
DELETE FROM tool_call WHERE message_seq = :seq

-- name: close_deliveries
UPDATE delivery SET state = 'expired', reason = 'removed', updated_at = :now
WHERE message_seq = :seq AND state IN ('unknown', 'failed')

-- name: entries_of_messages
SELECT log_entry.seq, log_entry.channel, log_entry.chat, message.message_id, delivery.sent_ids
FROM log_entry JOIN message ON message.seq = log_entry.message_seq
LEFT JOIN delivery ON delivery.key = log_entry.delivery_key
WHERE log_entry.message_seq IN (SELECT value FROM json_each(:seqs)) ORDER BY log_entry.seq

-- name: entries_between
SELECT seq FROM log_entry WHERE channel = :channel AND chat = :chat AND seq BETWEEN :first AND :last ORDER BY seq

-- name: last_said
SELECT text FROM message WHERE conversation_id = :id AND n IS NOT NULL AND removed_at IS NULL AND text <> ''
ORDER BY n DESC LIMIT 1

-- name: retell_conversation
UPDATE conversation SET last_text = :last_text, title = :title WHERE id = :id

-- name: remove_conversation
UPDATE conversation SET removed_at = :now, ended_at = coalesce(ended_at, :now), title = '', last_text = ''
WHERE id = :id

-- name: messages_saying
SELECT conversation_id, n FROM message WHERE text = :text AND n IS NOT NULL AND removed_at IS NULL
  AND state NOT IN ('waiting', 'running') AND role <> 'system' ORDER BY seq LIMIT 1000
