-- In which sessions an allowed person wrote: what their tools may see.
CREATE INDEX message_allowed ON message (channel, sender_id, session_key) WHERE rights = 'allowed';
