-- A row that waits for its not_before has not_before > created_at; a new one has not, and stays out
-- of dispatches_delayed.
CREATE INDEX dispatches_agent ON dispatches(kernel_id, agent_id, dispatch_id);
CREATE INDEX dispatches_delayed ON dispatches(not_before)
  WHERE status = 'pending' AND not_before > created_at;
CREATE INDEX dispatches_finished ON dispatches(finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX decisions_newest ON decisions(kernel_id, decided_at);
CREATE INDEX decisions_agent ON decisions(kernel_id, agent_id, decided_at);
CREATE INDEX occurrences_finished ON occurrences(finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX decisions_age ON decisions(decided_at);
