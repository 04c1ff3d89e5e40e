-- What cycles of earlier versions owed (edges, commits) becomes effects; what else they could not
-- tell is told by those.
INSERT OR IGNORE INTO facts(scope, key, value)
  SELECT 'effects:' || substr(scope, 12),
         printf('%020d', row_number() OVER (PARTITION BY scope ORDER BY key)),
         json_object('kind', 'edges', 'cycle', key, 'edges', json(value))
  FROM facts WHERE scope LIKE 'owed-edges:%' AND json_valid(value);
INSERT OR IGNORE INTO facts(scope, key, value)
  SELECT 'effects:' || substr(f.scope, 6) || '/' || f.key, printf('%020d', 1000001 + e.key),
         json_object('kind', 'history', 'cycle', json_extract(e.value, '$.cycle_id'),
                     'status', json_extract(e.value, '$.status'),
                     'ended', json_extract(e.value, '$.ended'),
                     'behind', 'git committer: its commits failed', 'outcomes', json('[]'))
  FROM facts f, json_each(f.value) e WHERE f.scope LIKE 'owed:%' AND json_valid(f.value);
DELETE FROM facts WHERE scope LIKE 'owed-edges:%' OR scope LIKE 'owed:%' OR scope LIKE 'carried:%';
