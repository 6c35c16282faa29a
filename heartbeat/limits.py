"""Every limit of the clock, with its unit in the name."""

GRACE_SECONDS_DEFAULT = 7_200.0
"""How late a run may still begin."""
PUNCTUAL_SECONDS = 60.0
"""A run that begins this soon after its due time is on time, whatever its grace."""
MISSED_ROWS_MAX = 20_000
"""Missed due times of one job that get a row after one absence, the newest ones: two weeks of one a minute."""
MISSED_LINES_MAX = 50
"""Of these, as many have a line of their own in the history; one more line says how many there were before."""
TICK_SECONDS = 2.0
"""How often the wall clock and the file are looked at."""
RETRY_SECONDS = 30.0
"""How long to rest after a look that could not be written down."""
STOP_SECONDS_MAX = 2.0
"""How long a stop waits for a run that is just being handed over."""
INTERVAL_SECONDS_MAX = 366 * 86_400
NAME_CHARS_MAX = 100
NOTE_CHARS_MAX = 300
HISTORY_TAIL_BYTES = 65_536
FILE_BYTES_MAX = 1_000_000
ARGUMENTS_MAX = 20
PROCEDURES_MAX = 500
LONG_ABSENCE_SECONDS = 86_400.0
"""After this long the due times are counted in a thread, so that nothing waits for it."""
