-- name: message_by_key
SELECT seq, version, n, message_id, conversation_id, session_key, chat, state FROM message
WHERE channel = :channel AND dedupe_key = :dedupe_key

-- name: message_by_platform_id
SELECT seq, n, text, state, session_key, conversation_id, sender_id, role, removed_at, flags FROM message
WHERE channel = :channel AND dedupe_key = :dedupe_key AND n IS NOT NULL

-- name: changes_of
SELECT kind, text FROM message WHERE channel = :channel AND chat = :chat AND edits = :edits AND sender_id = :sender_id
  AND kind IN ('edit', 'revoke') AND substr(dedupe_key, 1, length(:place)) = :place ORDER BY seq

-- name: moved_chat
SELECT new_chat, EXISTS (SELECT 1 FROM channel_fact WHERE channel_fact.channel = :channel
  AND channel_fact.key = 'renumbered:' || :chat) AS renumbered
FROM chat_move WHERE channel = :channel AND old_chat = :chat

-- name: latest_conversation
SELECT id, message_count, updated_at, ended_at, title FROM conversation
WHERE session_key = :session_key ORDER BY created_at DESC, id DESC LIMIT 1

-- name: conversation_by_id
SELECT id, message_count, updated_at, ended_at, session_key, channel, chat, thread, title FROM conversation WHERE id = :id

-- name: add_conversation
INSERT INTO conversation (id, session_key, channel, chat, thread, title, created_at, updated_at)
VALUES (:id, :session_key, :channel, :chat, :thread, :title, :now, :now)

-- name: touch_conversation
UPDATE conversation SET updated_at = max(updated_at, :now), message_count = :n, last_text = :last_text,
  ended_at = CASE WHEN :reopen THEN NULL ELSE ended_at END, title = CASE WHEN title = '' THEN :title ELSE title END,
  removed_at = NULL
WHERE id = :id

-- name: conversation_said
UPDATE conversation SET updated_at = max(updated_at, :now), last_text = :last_text WHERE id = :id

-- name: end_conversation
UPDATE conversation SET ended_at = :now WHERE id = :id AND ended_at IS NULL

-- name: next_version
SELECT coalesce(max(version), 0) + 1 FROM message

-- name: add_message
INSERT INTO message (version, conversation_id, n, session_key, channel, chat, thread, message_id, dedupe_key, role, kind,
  sender_id, sender_name, rights, origin, text, at, saved_at, state, command, turn_id, reply_to, edits, forwarded_from,
  attachments, flags, answer_to, rounds, quote)
VALUES (:version, :conversation_id, :n, :session_key, :channel, :chat, :thread, :message_id, :dedupe_key, :role, :kind,
  :sender_id, :sender_name, :rights, :origin, :text, :at, :saved_at, :state, :command, :turn_id, :reply_to, :edits,
  :forwarded_from, :attachments, :flags, :answer_to, :rounds, :quote)

-- name: edit_message
UPDATE message SET text = :text, original_text = coalesce(original_text, text), version = :version WHERE seq = :seq

-- name: add_log_entry
INSERT INTO log_entry (channel, chat, message_seq, delivery_key) VALUES (:channel, :chat, :message_seq, :delivery_key)

-- name: add_delivery
INSERT INTO delivery (key, message_seq, channel, chat, thread, reply_to, replaces, state, sent_ids, reason, created_at,
  updated_at)
VALUES (:key, :message_seq, :channel, :chat, :thread, :reply_to, :replaces, :state, :sent_ids, :reason, :now, :now)

-- name: waiting_sessions
SELECT session_key, min(origin) AS origin FROM message WHERE state IN ('waiting', 'running') AND command IS NULL
GROUP BY session_key ORDER BY min(seq)

-- name: waiting_commands
SELECT seq FROM message WHERE state IN ('waiting', 'running') AND state = 'waiting' AND command IS NOT NULL ORDER BY seq

-- name: waiting_messages
-- Both conditions on the state: only so does SQLite see that the partial index holds every row that is asked for.
SELECT * FROM message WHERE session_key = :session_key AND state IN ('waiting', 'running') AND state = 'waiting'
  AND command IS NULL ORDER BY seq LIMIT 100

-- name: message_by_seq
SELECT * FROM message WHERE seq = :seq

-- name: turn_by_id
SELECT * FROM turn WHERE id = :id

-- name: add_turn
INSERT INTO turn (id, session_key, conversation_id, state, attempts, started_at)
VALUES (:id, :session_key, :conversation_id, 'running', 1, :now)

-- name: restart_turn
UPDATE turn SET state = 'running', attempts = attempts + 1 WHERE id = :id

-- name: release_turn
UPDATE turn SET attempts = attempts - 1 WHERE id = :id

-- name: claim_message
UPDATE message SET state = 'running', turn_id = :turn_id, round = :round, version = :version WHERE seq = :seq

-- name: unclaim_messages
-- What its sender took back meanwhile is not answered by another try.
UPDATE message SET state = CASE WHEN text = '' AND attachments IS NULL AND original_text IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM turn WHERE turn.id = message.turn_id AND turn.reply_seq IS NOT NULL) THEN 'cancelled' ELSE 'waiting' END
WHERE turn_id = :turn_id AND state = 'running' AND role = 'user'

-- name: put_back
UPDATE message SET state = CASE WHEN text = '' AND attachments IS NULL AND original_text IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM turn WHERE turn.id = message.turn_id AND turn.reply_seq IS NOT NULL) THEN 'cancelled' ELSE 'waiting' END
WHERE session_key = :session_key AND state IN ('waiting', 'running')
  AND state = 'running' AND role = 'user'

-- name: uncount_turn
UPDATE turn SET attempts = attempts - 1 WHERE session_key = :session_key AND state = 'running'

-- name: running_messages
SELECT seq, turn_id FROM message WHERE state IN ('waiting', 'running') AND state = 'running' AND role = 'user' ORDER BY seq

-- name: interrupt_calls
UPDATE tool_call SET outcome = 'interrupted', ended_at = :now
WHERE outcome IS NULL AND message_seq IN (SELECT reply_seq FROM turn WHERE state = 'running')

-- name: interrupt_calls_of_turn
UPDATE tool_call SET outcome = 'interrupted', ended_at = :now
WHERE outcome IS NULL AND message_seq = (SELECT reply_seq FROM turn WHERE id = :id)

-- name: history
SELECT seq, n, role, kind, sender_id, sender_name, text, turn_id, round, rounds, call_count, at, rights, state,
  attachments, forwarded_from, flags, (
    SELECT asked.rights FROM message AS asked WHERE asked.turn_id = message.turn_id AND asked.role = 'user' LIMIT 1
  ) AS asked_by
FROM message
WHERE conversation_id = :conversation_id AND n < :n AND state NOT IN ('waiting', 'running', 'cancelled')
  AND command IS NULL AND removed_at IS NULL ORDER BY n DESC LIMIT :limit

-- name: reply_of_turn
SELECT message.* FROM turn JOIN message ON message.seq = turn.reply_seq WHERE turn.id = :id

-- name: calls_of_message
SELECT * FROM tool_call WHERE message_seq = :message_seq ORDER BY n

-- name: add_call
INSERT INTO tool_call (message_seq, n, round, call_id, name, args, fault, started_at)
VALUES (:message_seq, :n, :round, :call_id, :name, :args, :fault, :now)

-- name: end_call
UPDATE tool_call SET output = :output, outcome = :outcome, attempts = :attempts, ended_at = :now
WHERE message_seq = :message_seq AND call_id = :call_id

-- name: set_reply
UPDATE turn SET reply_seq = :seq WHERE id = :id

-- name: set_rounds
UPDATE message SET rounds = :rounds, call_count = :call_count, version = :version WHERE seq = :seq

-- name: finish_reply
UPDATE message SET text = :text, rounds = :rounds, state = :state, at = :now, flags = :flags, version = :version
WHERE seq = :seq

-- name: finish_message
UPDATE message SET state = :state, version = :version WHERE seq = :seq

-- name: messages_of_turn
SELECT seq, n, origin, text FROM message WHERE turn_id = :turn_id AND role = 'user' ORDER BY seq

-- name: finish_turn
UPDATE turn SET state = :state, ended_at = :now, error = :error, input_tokens = :input_tokens,
  output_tokens = :output_tokens WHERE id = :id

-- name: open_deliveries
SELECT delivery.*, message.text, message.attachments, message.conversation_id FROM delivery JOIN message ON message.seq = delivery.message_seq
WHERE delivery.state IN ('planned', 'sending', 'retry', 'unknown', 'failed')
  AND delivery.state IN ('planned', 'sending', 'retry') ORDER BY delivery.created_at, delivery.message_seq

-- name: shown_deliveries
SELECT delivery.*, message.text, message.attachments, message.conversation_id FROM delivery JOIN message ON message.seq = delivery.message_seq
WHERE delivery.state IN ('planned', 'sending', 'retry', 'unknown', 'failed')
ORDER BY delivery.created_at, delivery.message_seq LIMIT 500

-- name: delivery_by_key
SELECT delivery.*, message.text, message.attachments, message.conversation_id FROM delivery JOIN message ON message.seq = delivery.message_seq
WHERE delivery.key = :key

-- name: move_delivery
UPDATE delivery SET state = :state, attempts = :attempts, next_at = :next_at, sent_ids = :sent_ids, reason = :reason,
  updated_at = :now WHERE key = :key

-- name: last_sent
SELECT delivery.updated_at AS at FROM log_entry JOIN delivery ON delivery.key = log_entry.delivery_key
WHERE log_entry.channel = :channel ORDER BY log_entry.seq DESC LIMIT 1

-- name: last_received
SELECT saved_at AS at FROM message WHERE channel = :channel AND dedupe_key IS NOT NULL AND origin <> 'import' ORDER BY seq DESC LIMIT 1

-- name: log_lines
SELECT log_entry.seq AS entry_seq, log_entry.channel AS log_channel, log_entry.chat AS log_chat, message.*,
  delivery.sent_ids, delivery.updated_at AS sent_at
FROM log_entry JOIN message ON message.seq = log_entry.message_seq
LEFT JOIN delivery ON delivery.key = log_entry.delivery_key
WHERE log_entry.channel = :channel AND log_entry.chat = :chat AND log_entry.seq > :after
  AND message.removed_at IS NULL ORDER BY log_entry.seq

-- name: log_chats
SELECT log_entry.channel, log_entry.chat, max(log_entry.seq) AS last, coalesce(readlog_mark.seq, 0) AS marked,
  coalesce(readlog_mark.size_bytes, 0) AS size_bytes
FROM log_entry LEFT JOIN readlog_mark USING (channel, chat) GROUP BY log_entry.channel, log_entry.chat

-- name: set_mark
INSERT INTO readlog_mark (channel, chat, seq, size_bytes) VALUES (:channel, :chat, :seq, :size_bytes)
ON CONFLICT DO UPDATE SET seq = excluded.seq, size_bytes = excluded.size_bytes

-- name: get_fact
SELECT value FROM channel_fact WHERE channel = :channel AND key = :key

-- name: put_fact
INSERT INTO channel_fact (channel, key, value) VALUES (:channel, :key, :value)
ON CONFLICT DO UPDATE SET value = excluded.value

-- name: move_chat
INSERT INTO chat_move (channel, old_chat, new_chat) VALUES (:channel, :old_chat, :new_chat)
ON CONFLICT DO UPDATE SET new_chat = excluded.new_chat

-- name: move_conversations
UPDATE conversation SET chat = :new_chat, session_key = :new_key || substr(session_key, length(:old_key) + 1)
WHERE channel = :channel AND chat = :old_chat

-- name: move_messages
UPDATE message SET chat = :new_chat, session_key = :new_key || substr(session_key, length(:old_key) + 1),
  dedupe_key = CASE WHEN NOT :renumbered AND dedupe_key LIKE :old_prefix AND NOT EXISTS (
      SELECT 1 FROM message AS there WHERE there.channel = :channel
        AND there.dedupe_key = :new_chat || substr(message.dedupe_key, instr(message.dedupe_key, '/')))
    THEN :new_chat || substr(dedupe_key, instr(dedupe_key, '/')) ELSE dedupe_key END
WHERE channel = :channel AND chat = :old_chat

-- name: move_turns
UPDATE turn SET session_key = :new_key WHERE session_key = :old_key AND state = 'running'

-- name: move_deliveries
UPDATE delivery SET chat = :new_chat WHERE channel = :channel AND chat = :old_chat
  AND state IN ('planned', 'sending', 'retry')

-- name: address_of
SELECT channel, chat, thread FROM conversation WHERE session_key = :session_key LIMIT 1

-- name: name_in
SELECT message.sender_name FROM conversation JOIN message ON message.conversation_id = conversation.id AND message.n = 1
WHERE conversation.session_key = :session_key AND message.role = 'user'
ORDER BY conversation.created_at DESC LIMIT 1

-- name: waiting_list
SELECT message_id, session_key, state, saved_at FROM message WHERE state IN ('waiting', 'running') ORDER BY seq LIMIT 500

-- name: waiting_count
SELECT count(*) FROM message WHERE state IN ('waiting', 'running')

-- name: drop_message
UPDATE message SET state = 'cancelled', version = (SELECT max(version) + 1 FROM message)
WHERE message_id = :message_id AND state IN ('waiting', 'running') AND state = 'waiting'

-- name: conversations
SELECT id, session_key, channel, chat, title, updated_at, ended_at, message_count, last_text FROM conversation
WHERE (:channel IS NULL OR channel = :channel)
  AND (:after IS NULL OR updated_at >= :after) AND (:before IS NULL OR updated_at < :before)
  AND (:keys IS NULL OR session_key IN (SELECT value FROM json_each(:keys)))
  AND (:ids IS NULL OR id IN (SELECT value FROM json_each(:ids)))
  AND removed_at IS NULL
ORDER BY updated_at DESC, id LIMIT :limit

-- name: conversation_named
SELECT id, session_key, channel, chat, title, updated_at, ended_at, message_count, last_text FROM conversation
WHERE id = :part AND removed_at IS NULL AND (:keys IS NULL OR session_key IN (SELECT value FROM json_each(:keys)))

-- name: conversations_like
SELECT id, session_key, channel, chat, title, updated_at, ended_at, message_count, last_text FROM conversation
WHERE instr(id, :part) > 0 AND removed_at IS NULL AND (:keys IS NULL OR session_key IN (SELECT value FROM json_each(:keys)))
ORDER BY updated_at DESC LIMIT 20

-- name: conversation_messages
SELECT * FROM message WHERE conversation_id = :conversation_id AND n BETWEEN :first AND :last
  AND removed_at IS NULL ORDER BY n

-- name: conversation_calls
SELECT tool_call.*, message.n AS message_n FROM tool_call JOIN message ON message.seq = tool_call.message_seq
WHERE message.conversation_id = :conversation_id AND message.n BETWEEN :first AND :last
ORDER BY message.n, tool_call.n

-- name: messages_since
SELECT * FROM message WHERE version > :version AND n IS NOT NULL ORDER BY version LIMIT :limit

-- name: messages_between
-- First the fields of agent.cortex.index.said_record in their order.
SELECT conversation_id, n, role, text, sender_name, sender_id, session_key, channel, chat, at, message_id,
  seq, version, state, flags, attachments, call_count
FROM message WHERE version > :after AND version <= :last AND n IS NOT NULL ORDER BY version LIMIT :limit

-- name: count_messages
SELECT count(*) AS total, coalesce(sum(version <= :after), 0) AS before FROM message
WHERE version <= :last AND n IS NOT NULL

-- name: indexed_messages
SELECT count(*) FROM message WHERE version <= :version AND n IS NOT NULL AND (text <> '' OR attachments IS NOT NULL) AND state <> 'cancelled'
  AND (flags IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(flags) WHERE value = 'copy'))

-- name: running_replies
SELECT message.* FROM turn JOIN message ON message.seq = turn.reply_seq
WHERE turn.state = 'running' AND message.n IS NOT NULL

-- name: calls_since
SELECT tool_call.*, message.n AS message_n, message.seq AS seq FROM tool_call
JOIN message ON message.seq = tool_call.message_seq
WHERE message.version > :version AND message.version <= :last AND message.n IS NOT NULL
ORDER BY message.version, tool_call.n

-- name: newest_version
SELECT coalesce(max(version), 0) FROM message

-- name: latest_open_chat
SELECT conversation.id FROM message JOIN conversation ON conversation.id = message.conversation_id
WHERE message.channel = :channel AND message.role = 'user' AND conversation.ended_at IS NULL
ORDER BY message.seq DESC LIMIT 1

-- name: meta_get
SELECT value FROM meta WHERE key = :key

-- name: meta_put
INSERT INTO meta (key, value) VALUES (:key, :value) ON CONFLICT DO UPDATE SET value = excluded.value

-- name: add_usage
INSERT INTO usage (at, provider, model, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd,
  turn_id, conversation_id, origin)
VALUES (:at, :provider, :model, :input_tokens, :output_tokens, :cache_read_tokens, :cache_write_tokens, :cost_usd,
  :turn_id, :conversation_id, :origin)

-- name: spent_since
SELECT coalesce(sum(cost_usd), 0) AS cost_usd, coalesce(sum(input_tokens + output_tokens + cache_write_tokens), 0) AS tokens
FROM usage WHERE at >= :since

-- name: usage_between
SELECT provider, model, count(*) AS requests, sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
  sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens,
  coalesce(sum(cost_usd), 0.0) AS cost_usd, sum(cost_usd IS NULL) AS unpriced_requests
FROM usage WHERE at >= :after AND at < :before GROUP BY provider, model
ORDER BY sum(cost_usd) DESC, count(*) DESC, provider, model

-- name: turns_since
SELECT state, count(*) AS count, avg(ended_at - started_at) / 1000.0 AS average_seconds,
  max(ended_at - started_at) / 1000.0 AS longest_seconds
FROM turn WHERE started_at >= :since AND ended_at IS NOT NULL GROUP BY state ORDER BY count(*) DESC, state

-- name: tools_since
SELECT tool_call.name, count(*) AS calls, sum(tool_call.outcome <> 'success') AS not_successful,
  avg(tool_call.ended_at - tool_call.started_at) / 1000.0 AS average_seconds
FROM turn JOIN tool_call ON tool_call.message_seq = turn.reply_seq
WHERE turn.started_at >= :since AND tool_call.ended_at IS NOT NULL
GROUP BY tool_call.name ORDER BY count(*) DESC, tool_call.name LIMIT 40

-- name: sessions_of_allowed
SELECT DISTINCT session_key FROM message
WHERE rights = 'allowed' AND channel = :channel AND sender_id = :sender_id LIMIT 1000

-- name: session_conversations
SELECT id, session_key, channel, chat, title, updated_at, ended_at, message_count, last_text FROM conversation
WHERE session_key = :session_key AND removed_at IS NULL
  AND (:keys IS NULL OR session_key IN (SELECT value FROM json_each(:keys)))
ORDER BY created_at, id

-- name: touch_imported
UPDATE conversation SET updated_at = :updated_at, ended_at = :updated_at, message_count = :message_count,
  removed_at = NULL,
  last_text = CASE WHEN :last_text = '' THEN last_text ELSE :last_text END WHERE id = :id

-- name: heard_message
SELECT at, text, removed_at FROM message WHERE channel = :channel AND dedupe_key = :dedupe_key

-- name: checkpoint
PRAGMA main.wal_checkpoint(TRUNCATE)

-- name: optimize
PRAGMA main.optimize

-- name: merge_words
INSERT INTO idx.words (words, rank) VALUES ('merge', 200)
