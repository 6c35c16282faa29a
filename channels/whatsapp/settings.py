"""`[channels.whatsapp]`: what the settings file may say about WhatsApp."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import BaseModel, ConfigDict, Field, field_validator

from channels.whatsapp.ids import group_id, person_id, phone_digits


class WhatsAppSettings(BaseModel):
    """People and groups may be written as phone numbers in any form or as WhatsApp ids; they are ids inside."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = False
    owner: str = Field(default="", description="your phone number with country code, or your WhatsApp id")
    allow: tuple[str, ...] = Field(default=(), description="phone numbers that may talk to the agent")
    groups: tuple[str, ...] = Field(default=(), description="group ids the agent answers in")
    require_mention: bool = True
    phone: str = Field(default="", description="the number to link by an 8-character code; empty: by QR")

    @field_validator("owner", mode="before")
    @classmethod
    def _owner_id(cls, value: object) -> object:
        return person_id(str(value)) if _is_id(value) and value != "" else value

    @field_validator("allow", mode="before")
    @classmethod
    def _people_ids(cls, value: object) -> object:
        return _each(value, person_id)

    @field_validator("groups", mode="before")
    @classmethod
    def _group_ids(cls, value: object) -> object:
        return _each(value, group_id)

    @field_validator("phone", mode="before")
    @classmethod
    def _phone_digits(cls, value: object) -> object:
        return phone_digits(str(value)) if _is_id(value) and value != "" else value

    @property
    def owner_ids(self) -> frozenset[str]:
        return frozenset({self.owner} if self.owner else ())

    @property
    def allowed_ids(self) -> frozenset[str]:
        return frozenset(self.allow)

    @property
    def home_chat(self) -> str:
        """The private chat with the owner: its id is the owner's."""
        return self.owner

    @property
    def reachable_chats(self) -> frozenset[str]:
        """The chats that anything may be sent to; nobody else ever gets a message."""
        return self.owner_ids | self.allowed_ids | frozenset(self.groups)


def _is_id(value: object) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _each(value: object, read: Callable[[str], str]) -> object:
    if not isinstance(value, list | tuple):
        return value
    return tuple(read(str(item)) if _is_id(item) else item for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
