"""Keeps what happened and what was learned, as Markdown: the episodic memory and the knowledge files."""
