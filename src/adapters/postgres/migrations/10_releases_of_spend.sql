-- What a person says was not used: such a call is neither open nor settled, and may be settled yet.
ALTER TABLE spend ADD COLUMN released_at bigint, ADD COLUMN released_by text NOT NULL DEFAULT '',
  ADD COLUMN release_reason text NOT NULL DEFAULT '',
  ADD COLUMN released_tokens bigint NOT NULL DEFAULT 0,
  ADD COLUMN released_cost bigint NOT NULL DEFAULT 0;
