-- Which message or call made, brought or named an artifact.

-- name: keep
INSERT INTO idx.origin (path, rank, owner, n, part, tool) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (path, owner, n, part) DO UPDATE SET rank = excluded.rank, tool = excluded.tool

-- name: paths-of
SELECT path FROM idx.origin
WHERE owner = :owner AND (:n IS NULL OR n = :n) AND (:part IS NULL OR part = :part)

-- name: forget
DELETE FROM idx.origin WHERE owner = :owner AND (:n IS NULL OR n = :n) AND (:part IS NULL OR part = :part)

-- name: first-of-path
-- Of the conversations that made a file the first one, by the time of its message.
SELECT origin.owner, origin.n, origin.part, origin.tool, origin.rank FROM idx.origin
LEFT JOIN idx.record ON record.owner = origin.owner AND record.n = origin.n AND record.part = origin.part
WHERE origin.path = ?
ORDER BY origin.rank, ifnull(record.at, 0), origin.owner, origin.n, origin.part LIMIT 1
