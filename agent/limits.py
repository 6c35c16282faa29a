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
TOOL_OUTPUT_CHARS = 100_000
TASK_PREVIEW_CHARS = 2_000
RETRY_PAUSES_SECONDS = (2.0, 6.0, 18.0)
MODEL_RETRY_PAUSES_SECONDS = (5.0, 15.0, 30.0, 60.0, 90.0)
MODEL_RETRY_AFTER_SECONDS_MAX = 120.0
"""A service that names a longer pause than this is not waited for within a turn."""
MODEL_CONNECT_SECONDS = 10.0
NAME_LOOKUP_SECONDS = 1.0
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
CONVERSATION_MAPS_MAX = 1_000
"""Conversations whose memory map is kept; the longest unused goes first."""
MAP_SECONDS = 60.0
"""A memory map this old is not given to a new conversation; it is counted anew."""
CONTEXT_TOKENS_DEFAULT = 32_000
"""Context of a model whose size the settings do not give."""
BUDGET_SHARES = {"identity": 0.15, "prefrontal": 0.10, "memory": 0.30, "skills": 0.20, "history": 0.25}
