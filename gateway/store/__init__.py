"""hudhud.db, the truth, with index.db attached: the only package of the gateway that touches SQLite."""

from gateway.store.database import DatabaseBusy, DiskFull, StoreError
from gateway.store.rebuilding import Rebuild, RebuildStopped
from gateway.store.removal import StillUsed
from gateway.store.store import Store

__all__ = ["DatabaseBusy", "DiskFull", "Rebuild", "RebuildStopped", "StillUsed", "Store", "StoreError"]
