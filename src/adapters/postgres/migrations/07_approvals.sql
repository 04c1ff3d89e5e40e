-- What people are asked, and every attempt to decide or use it. `matter` tells two requests of one
-- dispatch apart; `hash` is what a person approves.
CREATE TABLE approvals(
  approval_id text COLLATE "C" PRIMARY KEY,
  kernel_id text COLLATE "C" NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  dispatch_id text COLLATE "C" NOT NULL,
  tool text NOT NULL,
  arguments_sha256 text NOT NULL,
  workspace text NOT NULL,
  before_sha256 text NOT NULL,
  shown text NOT NULL,
  matter text COLLATE "C" NOT NULL,
  hash text COLLATE "C" NOT NULL,
  reason text NOT NULL,
  node_id text COLLATE "C" NOT NULL,
  fence bigint NOT NULL,
  held integer NOT NULL,
  state text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  decided_at bigint,
  decided_by text NOT NULL DEFAULT '',
  note text NOT NULL DEFAULT '',
  ended_at bigint,
  decision_id text NOT NULL DEFAULT '',
  use_id text NOT NULL DEFAULT '',
  lines bigint NOT NULL
);
CREATE INDEX approvals_open ON approvals(state) WHERE state IN ('pending', 'approved');
CREATE INDEX approvals_matter ON approvals(dispatch_id, matter);
CREATE INDEX approvals_newest ON approvals(created_at, approval_id);
CREATE INDEX approvals_ended ON approvals(ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE approval_trail(
  approval_id text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  at bigint NOT NULL,
  what text NOT NULL,
  outcome text NOT NULL,
  by_whom text NOT NULL,
  detail text NOT NULL,
  PRIMARY KEY(approval_id, number)
);
