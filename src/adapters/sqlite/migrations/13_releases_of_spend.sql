-- What a person says was not used: such a call is neither open nor settled, and may be settled yet.
ALTER TABLE spend ADD COLUMN released_at INTEGER;
ALTER TABLE spend ADD COLUMN released_by TEXT NOT NULL DEFAULT '';
ALTER TABLE spend ADD COLUMN release_reason TEXT NOT NULL DEFAULT '';
ALTER TABLE spend ADD COLUMN released_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE spend ADD COLUMN released_cost INTEGER NOT NULL DEFAULT 0;
