"""`[channels.inapp]`: the page and its server."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

OWNER_ID = "owner"
HOME_CHAT = "home"
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class InAppSettings(BaseModel):
    """A bind other than loopback needs a token."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = True
    host: str = "127.0.0.1"
    port: int = Field(default=8710, ge=0, le=65535, description="0: any free port")
    token: SecretStr = SecretStr("")

    @model_validator(mode="after")
    def _token_outside(self) -> InAppSettings:
        if self.host not in LOOPBACK and not self.token.get_secret_value():
            raise ValueError(f"a `token`, because `host` is {self.host}: only loopback may go without one")
        return self

    @property
    def owner_ids(self) -> frozenset[str]:
        """Whoever got through the page's door is the owner."""
        return frozenset({OWNER_ID})

    @property
    def allowed_ids(self) -> frozenset[str]:
        return frozenset()

    @property
    def home_chat(self) -> str:
        """The conversation that alerts go to when the owner has no other channel."""
        return HOME_CHAT
