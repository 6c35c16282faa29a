"""What the page and the API show and steer: the owner's view of the running gateway."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from agent.capabilities.introspect.shapes import conversation_json, conversation_list_json, message_json
from agent.types import Person, Viewer
from channels.inapp.ports import BadQuery, UnknownConversation
from channels.message import Address
from gateway.health import Health
from gateway.outbox import Outbox
from gateway.people import People
from gateway.queue import Queue
from gateway.store import Store
from gateway.store.inbound import new_conversation_id

OWNER = Viewer(Person("owner", "owner", "owner"))
"""The page, the API, the command line: all of them the owner's."""
"""Gateway modules meet here; see `channels.inapp.ports.Backend`, which this implements."""
