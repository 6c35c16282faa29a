"""Every limit of the agent, with its unit in the name."""

ROUNDS_MAX = 8
SEARCH_HITS_DEFAULT = 15
SEARCH_HITS_MAX = 50
SNIPPET_CHARS = 320
GET_RECORDS_DEFAULT = 50
GET_FILE_CHARS = 12_000
CONVERSATIONS_DEFAULT = 20
CONVERSATIONS_MAX = 100
READ_MESSAGES_DEFAULT = 15
READ_TEXT_BRIEF_CHARS = 600
READ_TEXT_FULL_CHARS = 2_400
READ_OUTPUT_BRIEF_CHARS = 400
READ_OUTPUT_FULL_CHARS = 4_000
QUERY_CHARS_MAX = 4_096
RECALL_HITS_DEFAULT = 8
RECALL_HITS_MAX = 30
SESSION_HITS_DEFAULT = 10
SESSION_HITS_MAX = 25
SESSION_SNIPPET_CHARS = 300
SESSION_SEARCH_BYTES = 32 * 1024
HISTORY_MESSAGES_DEFAULT = 20
HISTORY_MESSAGES_MOST = 200
HISTORY_ANSWER_BYTES = 80 * 1024
HISTORY_TEXT_CHARS = 4_000
TOOL_OUTPUT_CHARS = 100_000
TASK_PREVIEW_CHARS = 2_000
RETRY_PAUSES_SECONDS = (2.0, 6.0, 18.0)
MODEL_RETRY_PAUSES_SECONDS = (5.0, 15.0, 30.0, 60.0, 90.0)
MODEL_RETRY_AFTER_SECONDS_MAX = 120.0
"""A service that names a longer pause than this is not waited for within a turn."""
MODEL_CONNECT_SECONDS = 10.0
AFTER_FINISH_SECONDS = 5.0
"""How long a whole reply waits for its figures."""
AFTER_DONE_SECONDS = 0.1
"""How long it waits for the end of the answer when the server said that nothing more comes."""
OUTPUT_TOKENS_MAX = 32_000
"""Asked for where a service wants a limit; what the model thinks counts too."""
CUT_OFF_RETRIES_MAX = 2
"""How often in a row a model may call again after its arguments were cut off."""
PICTURE_BYTES_MAX = 3_750_000
"""5 MB as base64, the smallest limit of the services."""
PICTURES_MAX = 10
"""Of one request; the newest are kept."""
NAME_LOOKUP_SECONDS = 0.9
CLUSTER_CHARS_MAX = 256
"""A user-perceived character longer than this (stacked marks) is no longer held back."""
SNAPSHOTS_KEPT = 50
SNAPSHOT_PAUSE_SECONDS = 0.5
EPISODE_HEADLINE_CHARS = 80
EPISODE_USER_CHARS = 280
EPISODE_REPLY_CHARS = 200
OUTCOME_LINE_CHARS = 200
DETAIL_CHARS = 200
"""The arguments of a call where people see them while it runs."""
RECALLED_HITS_MAX = 8
MEMORY_CHARS_MAX = 6_000
"""Of memory.md, which is in every prompt of the owner's; what is beyond is left out, with a word to say so."""
PREFERENCES_CHARS_MAX = 1_200
"""Of the digest of learned preferences in a prompt."""
CONVERSATION_MAPS_MAX = 1_000
"""Conversations whose memory map is kept; the longest unused goes first."""
DIGEST_DAYS = 7
DIGEST_CHARS_MAX = 2_400
DIGEST_ENTRIES_MAX = 12
DIGEST_ENTRY_CHARS = 180
HISTORY_FILL_SHARE = 0.5
"""The part of a model's context that the first request of a turn may use; the rest is for rounds and the answer."""
COMPACT_ABOVE_SHARE = 0.75
COMPACT_TO_SHARE = 0.5
COMPACT_CHARS_MIN = 500
"""A message this short is not cut."""
COMPACT_KEPT_SHARE = 0.23
"""What old messages keep at least of their length, before whole ones give way."""
SUMMARY_CHARS_MAX = 6_000
SUMMARY_CHARS_MIN = 20
STUB_CHARS_MIN = 2_000
"""An older tool result this long is not repeated in the history: a stub names the call that fetches it."""
STUB_AFTER_EXCHANGES = 2
GAP_SECONDS_MIN = 3_600.0
"""After a pause this long a turn is told how long ago the last message was."""
CORPUS_PAUSE_SECONDS = 2.0
CORPUS_DAYS_KEPT = 7
CORPUS_TEXT_CHARS = 200
CONTEXT_TOKENS_DEFAULT = 32_000
"""Context of a model whose size the settings do not give."""
CONTEXT_TOKENS_LISTED_MAX = 200_000
"""What a list says beyond this is not used: a turn would cost too much."""
BUDGET_SHARES = {"identity": 0.15, "prefrontal": 0.10, "memory": 0.30, "skills": 0.20, "history": 0.25}
LIGHT_TOKENS_MAX = 2_700
"""The request of a scheduled run, but for a task that is longer by itself."""
LIGHT_PART_TOKENS_MAX = 220
"""Each of the soul, the owner's rules, the memory map and the list of capabilities in it."""
LIGHT_FILE_TOKENS_MIN = 100
LIGHT_TOOLS = frozenset(
    {
        "memory_search",
        "memory_get",
        "memory_save",
        "conversation_list",
        "conversation_read",
        "channel_status",
        "usage_report",
        "load_capability",
    }
)
"""What a scheduled run is offered beside the tools its job names and those it loads."""
SKILL_BYTES_MAX = 262_144
CAPABILITIES_LOADED_MAX = 10
"""Of one conversation, beside those that are always there."""
CONVERSATIONS_LOADED_MAX = 1_000
"""Conversations whose loaded capabilities are remembered; the longest unused goes first."""
CAPABILITY_LINE_CHARS = 200
CAPABILITY_BODY_TOKENS_MAX = 4_000
"""Instructions of a capability that is loaded while a turn runs."""
OUTPUT_TAIL_CHARS = 500
"""Of a command that failed: its end says why."""
TOOL_NAMES_SHOWN = 12
TOOL_NAME_CHARS_MAX = 64
PROGRAM_GRACE_SECONDS = 0.2
"""Between asking a program to end and ending it."""
PROGRAM_DRAIN_SECONDS = 0.5
COMMAND_SECONDS_DEFAULT = 60
COMMAND_SECONDS_MAX = 600
READ_FILE_BYTES_MAX = 8_000_000
READ_FILE_CHARS = 40_000
"""What one call of read_file gives back."""
FILES_READ_REMEMBERED_MAX = 2_000
"""Files the model has read, over all conversations; the longest unread is forgotten first."""
LIST_ENTRIES_MAX = 500
LIST_DEPTH_MAX = 8
SENT_TEXT_CHARS_MAX = 20_000
CAPTION_CHARS_MAX = 1_024
PAGE_ADDRESS_CHARS_MAX = 2_000
PAGE_BYTES_MAX = 2_000_000
PAGE_CHARS = 20_000
"""What one call of web_fetch gives back."""
PAGE_SECONDS_MAX = 20.0
PAGE_REDIRECTS_MAX = 5
SERVER_START_SECONDS_MAX = 30.0
SERVER_CALL_SECONDS_MAX = 120.0
SERVER_PAUSES_SECONDS = (1.0, 5.0, 15.0, 60.0, 300.0)
"""Before a server of tools that went down is started again; the last one repeats."""
SERVER_STEADY_SECONDS = 60.0
"""A server that ran this long begins with the first pause again."""
SERVER_TOOLS_MAX = 200
SERVER_DESCRIPTION_CHARS = 400
SERVER_ERROR_CHARS = 300
COMMAND_BYTES_MAX = 10_240
"""A longer shell command is not looked into: the owner is asked."""
COMMAND_MARKS_MAX = 400
"""So many of `|<>($[{&` and backquotes one command may hold: the grammar's time grows with their square."""
COMMAND_NODES_MAX = 2_500
COMMAND_WORDS_MAX = 2_048
"""Words of all commands in one, those that are read more than once each time."""
COMMAND_DEPTH_MAX = 40
"""How deep statements, and commands that run commands, may lie in each other."""
SERVER_REFRESH_SECONDS = 300.0
"""A server that says nothing is asked for its tools so often: one that went down is noticed."""
SERVER_SCHEMA_CHARS_MAX = 20_000
SECRET_CHARS_MIN = 6
"""A shorter secret of the settings is too common a text to be masked wherever it stands."""
SECRET_WORD_CHARS_MAX = 1_024
"""A longer run of characters is no key; it bounds what looking for one costs."""
FORGET_CHOICES_MAX = 8
FORGET_SHOWN_MAX = 20
"""So many of the things that would be removed are shown; the rest is counted."""
FORGET_SHOWN_CHARS = 160
JOBS_LISTED_MAX = 100
