-- What people are asked, and every attempt to decide or use it. `matter` tells two requests of one
-- dispatch apart; `hash` is what a person approves.
CREATE TABLE approvals(
  approval_id TEXT PRIMARY KEY,
  kernel_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  dispatch_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  arguments_sha256 TEXT NOT NULL,
  workspace TEXT NOT NULL,
  before_sha256 TEXT NOT NULL,
  shown TEXT NOT NULL,
  matter TEXT NOT NULL,
  hash TEXT NOT NULL,
  reason TEXT NOT NULL,
  node_id TEXT NOT NULL,
  fence INTEGER NOT NULL,
  held INTEGER NOT NULL,
  state TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  decided_at INTEGER,
  decided_by TEXT NOT NULL,
  note TEXT NOT NULL,
  ended_at INTEGER,
  decision_id TEXT NOT NULL,
  use_id TEXT NOT NULL,
  lines INTEGER NOT NULL
) STRICT;
CREATE INDEX approvals_open ON approvals(state) WHERE state IN ('pending', 'approved');
CREATE INDEX approvals_matter ON approvals(dispatch_id, matter);
CREATE INDEX approvals_newest ON approvals(created_at, approval_id);
CREATE INDEX approvals_ended ON approvals(ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE approval_trail(
  approval_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  at INTEGER NOT NULL,
  what TEXT NOT NULL,
  outcome TEXT NOT NULL,
  by_whom TEXT NOT NULL,
  detail TEXT NOT NULL,
  PRIMARY KEY(approval_id, number)
) STRICT, WITHOUT ROWID;
