-- A call of a model is one row, by what was reserved until it is settled. Totals are what the
-- limits of a day are compared with: the lock of its row is what makes check and taking one. They
-- are updated often and stay few.
CREATE TABLE spend(
  call_id text COLLATE "C" PRIMARY KEY,
  day text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  settled_at bigint,
  dispatch_id text COLLATE "C" NOT NULL,
  kernel_id text COLLATE "C" NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  provider_id text COLLATE "C" NOT NULL,
  model text COLLATE "C" NOT NULL,
  input bigint NOT NULL,
  cached bigint NOT NULL,
  output bigint NOT NULL,
  reasoning bigint NOT NULL,
  cost bigint NOT NULL, -- millionths of a US dollar
  scopes text[] COLLATE "C" NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX spend_day ON spend(day);
CREATE TABLE spend_totals(
  day text COLLATE "C" NOT NULL,
  scope text COLLATE "C" NOT NULL,
  tokens bigint NOT NULL,
  cost bigint NOT NULL,
  PRIMARY KEY(day, scope)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);
