-- Takes the rows that `picked` selects out of dispatch_waiting. `placed` gives each of these rows t
-- of taken the number `room` of its members that run from now on, the first ones; the others wait as
-- before. A first attempt runs beside others of its claim; any later one has a claim of its own,
-- with its own fence. Each row of the answer begins with how many rows its agent gave; its columns
-- are those of claim_column. $4: the node. $5: how long its lease is, in milliseconds.
WITH taken AS MATERIALIZED (
  DELETE FROM dispatch_waiting WHERE ctid = ANY(ARRAY({picked})) RETURNING *
), placed AS MATERIALIZED ({placed}
), rest AS (
  INSERT INTO dispatch_waiting(agent_no, priority, created_at, first_id, not_before, size,
                               attempted, members, max_attempts, metadata, bodies)
  SELECT agent_no, priority, created_at, members[room + 1], not_before, size - room, attempted,
         members[room + 1:], max_attempts, metadata, bodies[room + 1:]
  FROM placed WHERE size > room
), run AS (
  INSERT INTO dispatch_running(agent_no, owner, lease_expires_at, started_at, fence, attempt,
                               attempted, members)
  SELECT p.agent_no, $4, now_ms() + $5::bigint, now_ms(), coalesce(s.fence, 0) + 1,
         coalesce(s.attempt, 0) + 1, p.attempted, p.members[:p.room]
  FROM placed p
  LEFT JOIN dispatch_results s ON p.attempted AND s.dispatch_id = p.first_id
  WHERE p.room > 0
  RETURNING claim_no, agent_no, attempted, members
)
SELECT t.n, run.claim_no, run.attempted, run.agent_no, p.priority, p.created_at, p.not_before,
       p.max_attempts, p.metadata, run.members, p.bodies[:p.room], now_ms()
FROM run
JOIN placed p ON p.first_id = run.members[1]
JOIN (SELECT agent_no, count(*) AS n FROM taken GROUP BY agent_no) t ON t.agent_no = run.agent_no
