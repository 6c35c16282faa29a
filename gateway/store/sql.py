"""The named sentences of queries.sql, loaded once."""

from __future__ import annotations

from gateway.store.database import HERE, load_queries

SQL = load_queries(HERE / "queries.sql")
