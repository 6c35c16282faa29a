-- What comes in beyond words: groups, files, live drafts, what is taken back; and people: who is let in, who is one.

-- name: unseen
-- What others said in a group since the agent last took a message there.
SELECT kind, sender_id, sender_name, text, at, attachments FROM message
WHERE conversation_id = :conversation_id AND n < :n AND role = 'user' AND state = 'observed' AND removed_at IS NULL AND n > coalesce((
    SELECT taken.n FROM message AS taken WHERE taken.conversation_id = :conversation_id AND taken.n < :n
      AND taken.turn_id IS NOT NULL AND taken.role = 'user' ORDER BY taken.n DESC LIMIT 1
  ), 0)
ORDER BY n DESC LIMIT :limit

-- name: unfetched
SELECT * FROM message WHERE state IN ('waiting', 'running') AND state = 'waiting' AND command IS NULL
  AND (instr(attachments, '"remote":"') > 0
    OR text = '' AND (instr(attachments, '"kind":"voice"') > 0 OR instr(attachments, '"kind":"audio"') > 0))
ORDER BY seq

-- name: set_files
UPDATE message SET attachments = :attachments, text = coalesce(:text, text), version = :version,
  flags = CASE WHEN :flag IS NULL THEN flags ELSE json_insert(coalesce(flags, '[]'), '$[#]', :flag) END
WHERE seq = :seq AND state <> 'cancelled' AND removed_at IS NULL

-- name: set_observed
UPDATE message SET state = 'observed', version = :version WHERE seq = :seq AND state = 'waiting'

-- name: set_draft
UPDATE turn SET draft = :draft WHERE id = :id AND state = 'running'

-- name: move_people
UPDATE OR REPLACE person SET id = :new_chat WHERE channel = :channel AND id = :old_chat

-- name: people
SELECT channel, id, name, since FROM person ORDER BY since, channel, id

-- name: add_person
INSERT INTO person (channel, id, name, since) VALUES (:channel, :id, :name, :now)
ON CONFLICT DO UPDATE SET name = CASE WHEN excluded.name = '' THEN person.name ELSE excluded.name END

-- name: remove_person
DELETE FROM person WHERE channel = :channel AND id = :id

-- name: pairings
SELECT code, channel, id, name, expires_at FROM pairing WHERE expires_at > :now ORDER BY expires_at

-- name: add_pairing
INSERT INTO pairing (code, channel, id, name, expires_at) VALUES (:code, :channel, :id, :name, :expires_at)

-- name: remove_pairing
DELETE FROM pairing WHERE code = :code OR expires_at <= :now

-- name: chat_moves
SELECT channel, old_chat, new_chat FROM chat_move

-- name: speakers
-- The known people whom the agent listened to there; in a group that is not listed it listens to nobody.
SELECT DISTINCT message.sender_id FROM conversation JOIN message ON message.conversation_id = conversation.id
WHERE conversation.session_key = :session_key AND message.n IS NOT NULL AND message.role = 'user'
  AND message.rights <> 'stranger' AND message.state <> 'observed' LIMIT 100

-- name: revoke_message
-- Its sender took it back: nobody reads it any more. The log, which only grows, keeps what it said.
UPDATE message SET state = CASE state WHEN 'waiting' THEN 'cancelled' ELSE state END,
  original_text = coalesce(original_text, text), text = '', attachments = NULL, version = :version WHERE seq = :seq

-- name: hide_text
UPDATE conversation SET last_text = CASE last_text WHEN substr(:text, 1, 200) THEN '' ELSE last_text END,
  title = CASE WHEN instr(trim(:text, char(9, 10, 13, 32)), title) = 1 THEN '' ELSE title END WHERE id = :id

-- name: rest_conversation
UPDATE conversation SET ended_at = :at, updated_at = :at WHERE id = :id

-- name: move_senders
UPDATE message SET sender_id = :new_chat WHERE channel = :channel AND sender_id = :old_chat
