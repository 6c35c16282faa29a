"""Every limit of the Telegram channel, with its unit in the name. Source: https://core.telegram.org/bots/api."""

TEXT_UNITS_MAX = 4096
"""UTF-16 code units of one message, counted after the formatting became entities."""
CUT_UNITS_MIN = 3_600
"""Telegram's programs cut a long text at its last good border before TEXT_UNITS_MAX: a text of at least so many units
may go on in the next message."""
CAPTION_UNITS_MAX = 1_024
DOWNLOAD_BYTES_MAX = 20 * 1024 * 1024
"""What the Bot API gives out over the line."""
DISK_BYTES_MAX = 500_000_000
"""What is taken from the disk of a Bot API server of one's own, which has no limit."""
UPLOAD_BYTES_MAX = 50_000_000
PHOTO_BYTES_MAX = 10_000_000
"""A larger picture goes out as a file."""
FILE_SECONDS = 600.0
"""What the way of one file may take."""
CHUNK_BYTES = 64 * 1024
DRAFT_SECONDS = 1.5
"""Telegram takes about one message a second in a chat, edits included, and twenty a minute in a group."""
SILENCE_SECONDS_MAX = 180.0
WEBHOOK_LOOK_SECONDS = 60.0
WEBHOOK_BYTES_MAX = 1024 * 1024
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
TYPING_EVERY_SECONDS = 4.5
"""Telegram shows the sign for 5 s or until a message arrives."""
ALBUMS_REMEMBERED = 256
OFFSET_DAYS_MAX = 6
"""After a week without updates Telegram numbers them anew: an older offset is worth nothing."""
