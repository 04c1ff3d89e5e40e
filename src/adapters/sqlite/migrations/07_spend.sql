-- A call of a model is one row, by what was reserved until it is settled; its scopes are a JSON
-- list. Totals are what the limits of a day are compared with. Days are texts such as 2026-02-13.
CREATE TABLE spend(
  call_id TEXT PRIMARY KEY,
  day TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  settled_at INTEGER,
  dispatch_id TEXT NOT NULL,
  kernel_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  provider_id TEXT NOT NULL,
  model TEXT NOT NULL,
  input INTEGER NOT NULL,
  cached INTEGER NOT NULL,
  output INTEGER NOT NULL,
  reasoning INTEGER NOT NULL,
  cost INTEGER NOT NULL, -- millionths of a US dollar
  scopes TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX spend_day ON spend(day);
CREATE TABLE spend_totals(
  day TEXT NOT NULL,
  scope TEXT NOT NULL,
  tokens INTEGER NOT NULL,
  cost INTEGER NOT NULL,
  PRIMARY KEY(day, scope)
) STRICT, WITHOUT ROWID;
