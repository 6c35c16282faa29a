"""`[channels.telegram]`: what the settings file may say about Telegram."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

PUBLIC_SERVER = "https://api.telegram.org"


class TelegramSettings(BaseModel):
    """Ids may be written as numbers or strings; they are strings inside."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = False
    token: SecretStr = SecretStr("")
    base_url: str = Field(default=PUBLIC_SERVER, description="root of the Bot API, without /bot")
    mode: Literal["polling", "webhook"] = "polling"
    webhook_url: str = Field(default="", description="this server's address as the internet sees it")
    owner: str = Field(default="", description="your numeric user id")
    allow: tuple[str, ...] = Field(default=(), description="numeric user ids that may talk to the agent")
    strangers: Literal["silent", "pair"] = "silent"
    groups: tuple[str, ...] = Field(default=(), description="group ids the agent answers in")
    require_mention: bool = True

    @field_validator("owner", mode="before")
    @classmethod
    def _owner_text(cls, value: object) -> object:
        return str(value) if isinstance(value, int) else value

    @field_validator("allow", "groups", mode="before")
    @classmethod
    def _id_texts(cls, value: object) -> object:
        return tuple(str(item) for item in value) if isinstance(value, list | tuple) else value  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]

    @model_validator(mode="after")
    def _reachable(self) -> TelegramSettings:
        if self.enabled and self.mode == "webhook" and not self.webhook_url.startswith(("https://", "http://")):
            raise ValueError("a `webhook_url` (https://...) with mode `webhook`")
        return self

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
        """The chats that anything may be sent to, besides those of people who were let in later."""
        return self.owner_ids | self.allowed_ids | frozenset(self.groups)
