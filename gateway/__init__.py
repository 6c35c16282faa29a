"""The hub: wiring, truth, delivery."""

__version__ = "0.1.0"
