"""Decides whether a tool call is safe, must be confirmed by the owner, or is blocked: the safety gate."""

from agent.amygdala.gate import Amygdala, Confirm, shown

__all__ = ["Amygdala", "Confirm", "shown"]
