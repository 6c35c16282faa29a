"""The named sentences of the `.sql` files, loaded once."""

from __future__ import annotations

from gateway.store.database import HERE, load_queries

SQL = {name: text for file in sorted(HERE.glob("*.sql")) for name, text in load_queries(file).items()}
