"""Every limit of the Telegram channel, with its unit in the name. Source: https://core.telegram.org/bots/api."""

TEXT_UNITS_MAX = 4096
"""UTF-16 code units of one message, counted after the formatting became entities."""
ENTITIES_MAX = 100
"""Telegram drops or refuses what is formatted beyond this many entities in one message."""
UPDATES_MAX = 100
POLL_SECONDS = 30
"""How long Telegram holds a request for news open when there are none."""
POLL_MARGIN_SECONDS = 10.0
"""What the line may take on top of that before it counts as dead."""
CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 30.0
IDLE_CONNECTION_SECONDS = 15.0
"""Shorter than any server's own, so that a request rarely meets a connection that is just being closed."""
SENDS_IN_FLIGHT_MAX = 32
TYPING_IN_FLIGHT_MAX = 4
ACCEPT_PAUSES_SECONDS = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
TYPING_DELAY_SECONDS = 0.3
"""An answer that comes at once needs no typing sign."""
TYPING_EVERY_SECONDS = 4.5
"""Telegram shows the sign for 5 s or until a message arrives."""
TYPING_SECONDS_MAX = 600.0
ALBUMS_REMEMBERED = 256
OFFSET_DAYS_MAX = 6
"""After a week without updates Telegram numbers them anew: an older offset is worth nothing."""
