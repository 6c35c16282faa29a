"""Every limit of the gateway, with its unit in the name."""

TEXT_CHARS_MAX = 200_000
"""A longer text is cut here when a turn takes it; the saved message stays whole."""
REQUEST_BYTES_MAX = 20 * 1024 * 1024
HISTORY_MESSAGES_MAX = 60
UNSEEN_MESSAGES_MAX = 50
"""Of what others said in a group, so many messages go along when the agent is spoken to."""
TURN_SECONDS_MAX = 900.0
TURN_ATTEMPTS_MAX = 50
"""A turn that broke off this often with the program is given up, and its sender is told. Nobody can tell a turn that
takes the program down from one that ran when something else did (a kill, a power cut), so the limit is far above what
bad luck can reach: it only ends a loop of crashes."""
SEND_PAUSES_SECONDS = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0)
SEND_ATTEMPTS_MAX = 20
SENDS_IN_FLIGHT_MAX = 32
CHANNEL_PAUSES_SECONDS = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
DATABASE_BUSY_SECONDS = 5.0
COMMIT_ROWS_MAX = 256
WAL_BYTES_MAX = 16 * 1024 * 1024
"""A write-ahead log that grew beyond this, because somebody read for long, is cut as soon as nobody needs it."""
WAL_RETRY_SECONDS = 5.0
INDEX_WAIT_SECONDS = 20.0
"""How long a search that found the index damaged waits for the new one, before it answers from a part of it."""
INDEX_SMALL_BYTES = 4 * 1024 * 1024
"""An index no larger than this is checked before the first answer, a larger one meanwhile."""
INDEX_START_SECONDS = 0.5
"""How long a start waits for an index that is built anew, before it answers meanwhile."""
INDEX_RETRY_SECONDS = 300.0
"""After this long an index that could not be built (no space) is tried again."""
READLOG_RETRY_SECONDS = 2.0
STOP_SECONDS_MAX = 5.0
"""How long a clean stop waits for running turns before it leaves them to the next start."""
READLOG_LAG_SECONDS = 0.05
READLOG_MARK_SECONDS = 60.0
CLIENT_SECONDS = 30.0
"""How long a command waits for one answer of the running gateway."""
EVENTS_SILENCE_SECONDS = 60.0
"""The event stream says something at least every 15 s; after this long without a word the line is dead."""
LOG_FILE_BYTES_MAX = 2 * 1024 * 1024
LOG_FILES_MAX = 4
APPROVAL_SECONDS = 600.0
"""How long the owner has to answer a question; then the answer is no."""
SEND_WAIT_SECONDS = 20.0
"""How long a tool that sends a message waits to hear that it arrived."""
STATUS_SKIPPED_MAX = 50
"""So many files that are not searched are named by `status`."""
IMPORT_BATCH_MESSAGES = 250
"""Saved in one transaction by an import; a gateway that runs beside it waits no longer than for one of these."""
DISK_BYTES_LOW = 1_000_000_000
DISK_BYTES_MIN = 100_000_000
"""With less free space `doctor` warns, and with less than this it calls it a fault."""
REMOVE_BATCH_MESSAGES = 250
"""Taken out in one transaction by a removal; what else is to be saved waits no longer than for one of these."""
QUOTE_CHARS_MAX = 4_000
"""Of a text that a message replies to, so much goes along."""
FETCHES_MAX = 16
"""Files that are fetched at the same time."""
FETCH_PAUSES_SECONDS = (1.0, 3.0, 10.0, 30.0, 60.0)
"""Between tries to fetch a file while its channel has no line; after the last the message goes on without it."""
JOINED_PARTS_MAX = 20
"""A chat that sends one part after the other is waited for at most so many times `agent.join_seconds`."""
TRANSCRIPT_CHARS_MAX = 50_000
TRANSCRIBE_SECONDS_MAX = 300.0
PAIRING_SECONDS = 3600.0
PAIRINGS_OPEN_MAX = 3
"""Codes of one channel that are good at the same time: strangers cannot fill the owner's chat."""
ONE_MESSAGE_CHARS = 1_500
"""A text that no channel needs two messages for: to put it in the place of another twice does no harm."""
DRAFT_CHARS_MIN = 20
"""A live draft begins with at least so much."""
CHANGE_PAUSES_SECONDS = (1.0, 5.0, 30.0, 60.0)
"""Between tries to show in the chat that a question is closed."""
WATCH_SECONDS = 15.0
"""How often a channel is looked at for a sign of life."""
RUNS_MAX = 3
"""Scheduled runs side by side; fewer where there are fewer workers, so that one is left for people."""
RUN_SECONDS_MAX = 600.0
RUN_TOKENS_MAX = 200_000
"""What one scheduled run may spend, in and out; then no further model call of it is made."""
RUNS_COUNTED_MAX = 50
"""Runs whose tokens are remembered; more than can run at once."""
ALERT_REPEAT_SECONDS = 86_400.0
"""An alert equal to its job's last one is not sent again so long."""
ALERTS_KEPT_SECONDS = 30 * 86_400.0
ANSWERED_MESSAGES_MAX = 500
"""How many of the last messages sent to a chat are looked through for the one that a person replies to."""
MISSED_NAMES_MAX = 20
"""Jobs that a summary of missed runs names."""
CHANNEL_DOWN_SECONDS = 600.0
"""How long a channel may be down before the owner is told on another one."""
MEMORY_GRACE_SECONDS = 32 * 86_400.0
"""How late a job of the memory may still begin: a day or a week without it is made up for after a long rest too."""
BUILT_IN_RUNS_KEPT_SECONDS = 7 * 86_400.0
FILES_KEPT_SECONDS = 7 * 86_400.0
"""Snapshots of prompts, event logs, and logs that are no longer written to."""
MERGE_ROUNDS_MAX = 100
"""Steps in which the search index is merged at night; each holds up no message for long."""
RUN_NOTE_CHARS = 200
STEP_NOTE_CHARS = 160
