"""The named sentences of queries.sql and removal.sql, loaded once."""

from __future__ import annotations

from gateway.store.database import HERE, load_queries

SQL = load_queries(HERE / "queries.sql") | load_queries(HERE / "removal.sql")
