"""Every limit of the WhatsApp channel, with its unit in the name."""

TEXT_CHARS_MAX = 4_000
"""Characters of one message. WhatsApp takes 65,536; what is longer than this is read more easily in parts."""
CUT_CHARS_MIN = 65_000
"""A text this long is one that WhatsApp may have cut: the next message is waited for."""
WRAPPERS_MAX = 10
"""So many wrappers around a message are opened."""
PHOTO_BYTES_MAX = 16 * 1024 * 1024
"""WhatsApp's own limit for pictures, audio and video; a larger one goes as a document."""
FILE_BYTES_MAX = 100_000_000
"""Larger files are neither fetched nor sent: the library holds a whole file in memory."""
FETCH_SECONDS_MAX = 60.0
"""How long a file of a message may take to come."""
HOLD_SECONDS_MAX = 30.0
"""How long the library's callback waits until its message is saved."""
ACCEPT_PAUSES_SECONDS = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
ANSWER_AGE_SECONDS_MAX = 24 * 3600.0
"""What was written longer ago than this when it arrives is logged and not answered."""
AHEAD_SECONDS_MAX = 24 * 3600.0
"""A time further in the future than this is a clock that is wrong: the time of arrival counts."""
REACH_SECONDS_MAX = 10.0
"""How long the first look for a network may take."""
CONNECT_SECONDS_MAX = 45.0
"""From the dial to the first word of the other side."""
RECONNECT_SECONDS_MAX = 90.0
"""How long the library may try to get a broken line back by itself."""
SILENCE_SECONDS = 300.0
"""After this long without a word the other side is asked for a sign of life."""
PROBE_SECONDS_MAX = 30.0
DEAD_SECONDS = 2 * SILENCE_SECONDS + PROBE_SECONDS_MAX
"""After this long without any sign, not even an answer to that, the connection is given up from outside."""
CALL_SECONDS_MAX = 30.0
SEND_SECONDS_MAX = 90.0
"""The library itself gives up on a message after 75 s."""
SENDS_IN_FLIGHT_MAX = 4
DRAIN_SECONDS = 0.2
"""Before a stop: what the library has taken already is heard out until it is quiet for so long,"""
DRAIN_SECONDS_MAX = 1.5
"""and for so long at most."""
STOP_SECONDS_MAX = 3.0
CODE_SECONDS_MAX = 75.0
"""A QR code is good for 60 s at first and 20 s later; when none follows in this time there will be none."""
CHURN_CONNECTIONS = 6
"""So many connections, each closed within CHURN_SHORT_SECONDS, all inside CHURN_WINDOW_SECONDS: somebody else uses the
session."""
CHURN_SHORT_SECONDS = 10.0
CHURN_WINDOW_SECONDS = 60.0
SYNC_SECONDS_MAX = 60.0
"""How long after a connection messages count as those that waited, when nothing says that they are all there."""
HISTORY_BATCH_MESSAGES = 100
QUOTABLE_KEPT = 500
"""Messages whose author and text are remembered for a reply that quotes them."""
TITLE_SECONDS_MAX = 5.0
"""How long the first message of a group waits to hear the group's name."""
TYPING_EVERY_SECONDS = 10.0
"""WhatsApp takes the sign away by itself after some 25 s."""
