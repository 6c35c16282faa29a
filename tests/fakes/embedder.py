"""An embedder that knows a few concepts: words of one concept have one vector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

DIMENSIONS = 64
CONCEPTS: Mapping[str, str] = {"car": "vehicle", "automobile": "vehicle", "سيارة": "vehicle", "doctor": "physician"}


class FakeEmbedder:
    """A text is the sum of its words' directions. `asked` counts the texts that were embedded."""

    def __init__(self, name: str = "fake-1") -> None:
        self.name = name
        self.asked = 0

    def questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.passages(texts)

    def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += len(texts)
        return np.stack([_direction(text) for text in texts])


def _direction(text: str) -> NDArray[np.float32]:
    total = np.zeros(DIMENSIONS, np.float32)
    for word in text.lower().replace(":", " ").split():
        rng = np.random.default_rng(crc32(CONCEPTS.get(word, word).encode()))
        total += rng.standard_normal(DIMENSIONS).astype(np.float32)
    return total / (np.linalg.norm(total) or 1.0)
