-- Sentences about the runs, jobs and alerts of the clock.

-- name: run_claim
INSERT INTO run (job, due_at, kind, started_at, late_seconds, by_hand)
VALUES (:job, :due_at, :kind, :now, :late_seconds, :by_hand)
ON CONFLICT DO NOTHING

-- name: run_skip
INSERT INTO run (job, due_at, kind, outcome, reason, ended_at) VALUES (:job, :due_at, :kind, :outcome, :reason, :now)
ON CONFLICT DO NOTHING

-- name: run_finish
UPDATE run SET ended_at = :now, outcome = :outcome, reason = :reason,
  conversation_id = coalesce(:conversation_id, conversation_id)
WHERE kind = :kind AND job = :job AND due_at = :due_at AND outcome IS NULL
RETURNING *, (SELECT sum(cost_usd) FROM usage WHERE usage.conversation_id = run.conversation_id) AS cost_usd

-- name: run_latest
SELECT run.*, max(due_at), (SELECT sum(cost_usd) FROM usage WHERE usage.conversation_id = run.conversation_id) AS cost_usd
FROM run WHERE kind = :kind AND due_at <= :until GROUP BY job

-- name: run_history
SELECT run.*, (SELECT sum(cost_usd) FROM usage WHERE usage.conversation_id = run.conversation_id) AS cost_usd
FROM run WHERE kind <> 'built-in' OR (reason <> '' AND outcome IN ('ok', 'error', 'interrupted'))
ORDER BY due_at DESC, job, kind LIMIT :limit

-- name: run_unfinished
SELECT run.*, NULL AS cost_usd FROM run WHERE kind = :kind AND outcome IS NULL ORDER BY due_at

-- name: runs_started
SELECT count(*) FROM run WHERE started_at >= :since AND kind <> 'built-in' AND NOT by_hand

-- name: runs_tokens
SELECT coalesce(sum(input_tokens + output_tokens + cache_write_tokens), 0) FROM usage
WHERE at >= :since AND origin = 'scheduled'

-- name: run_progress
UPDATE run SET reason = :reason, conversation_id = :conversation_id
WHERE kind = :kind AND job = :job AND due_at = :due_at AND outcome IS NULL

-- name: run_note
UPDATE run SET reason = CASE WHEN coalesce(reason, '') = '' THEN :note ELSE reason || '; ' || :note END
WHERE conversation_id = :conversation_id

-- name: runs_pruned
-- The latest row of a job stays: a start looks back to it.
DELETE FROM run WHERE kind = 'built-in' AND due_at < :before AND outcome IS NOT NULL AND coalesce(reason, '') = ''
  AND due_at < (SELECT max(due_at) FROM run AS later WHERE later.kind = run.kind AND later.job = run.job)

-- name: jobs_off
SELECT kind, job FROM job_off

-- name: job_off
INSERT INTO job_off (kind, job) VALUES (:kind, :job) ON CONFLICT DO NOTHING

-- name: job_on
DELETE FROM job_off WHERE kind = :kind AND job = :job

-- name: jobs_seen
SELECT job, timing, first_seen_at FROM job_seen WHERE kind = :kind

-- name: job_seen
INSERT INTO job_seen (kind, job, timing, first_seen_at) VALUES (:kind, :job, :timing, :now)
ON CONFLICT DO UPDATE SET timing = excluded.timing, first_seen_at = excluded.first_seen_at

-- name: job_forgotten
DELETE FROM job_seen WHERE kind = :kind AND job = :job

-- name: run_in_queue
SELECT message.state, turn.state AS turn_state FROM message LEFT JOIN turn ON turn.id = message.turn_id
WHERE message.channel = :kind AND message.dedupe_key = :key

-- name: alert_last
SELECT turn_id, same, at, repeats FROM alert WHERE kind = :kind AND job = :job ORDER BY at DESC LIMIT 1

-- name: alert_again
UPDATE alert SET repeats = repeats + 1 WHERE turn_id = :turn_id

-- name: add_alert
INSERT INTO alert (turn_id, kind, job, channel, chat, thread, text, same, at, release_at)
VALUES (:turn_id, :kind, :job, :channel, :chat, :thread, :text, :same, :at, :release_at)
ON CONFLICT DO NOTHING

-- name: alert_release_at
SELECT min(release_at) FROM alert WHERE release_at IS NOT NULL

-- name: alerts_due
SELECT alert.*, turn.conversation_id, message.n FROM alert LEFT JOIN turn ON turn.id = alert.turn_id
LEFT JOIN message ON message.seq = turn.reply_seq
WHERE release_at <= :now ORDER BY alert.at

-- name: alert_released
UPDATE alert SET release_at = NULL WHERE turn_id = :turn_id

-- name: alerts_pruned
DELETE FROM alert WHERE at < :before AND release_at IS NULL

-- name: copies_by_flag
SELECT * FROM message WHERE flags LIKE :flag AND removed_at IS NULL

-- name: forget_alert
DELETE FROM alert WHERE turn_id = :turn_id

-- name: forget_run_note
UPDATE run SET reason = '' WHERE conversation_id = :conversation_id AND outcome IS NOT NULL

-- name: run_of_turn
SELECT turn.conversation_id, message.channel AS kind, message.chat AS job,
  (SELECT n FROM message AS reply WHERE reply.seq = turn.reply_seq) AS n
FROM turn JOIN message ON message.turn_id = turn.id AND message.origin = 'scheduled' WHERE turn.id = :turn_id

-- name: answered_message
SELECT message.flags FROM (
  SELECT delivery_key FROM log_entry
  WHERE channel = :channel AND chat = :chat AND delivery_key IS NOT NULL ORDER BY seq DESC LIMIT :limit
) AS recent
JOIN delivery ON delivery.key = recent.delivery_key
JOIN message ON message.seq = delivery.message_seq, json_each(delivery.sent_ids) AS sent
WHERE sent.value = :reply_to LIMIT 1

-- name: run_of_conversation
SELECT channel AS kind, chat AS job, dedupe_key FROM message
WHERE conversation_id = :conversation_id AND n = 1 AND origin = 'scheduled' AND state = 'running'
