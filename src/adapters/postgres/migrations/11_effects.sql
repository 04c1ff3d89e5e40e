-- What cycles of earlier versions owed (edges, commits) becomes effects; what else they could not
-- tell is told by those.
INSERT INTO facts(scope, key, value)
  SELECT 'effects:' || substr(scope, 12),
         lpad((row_number() OVER (PARTITION BY scope ORDER BY key))::text, 20, '0'),
         json_build_object('kind', 'edges', 'cycle', key, 'edges', value::json)::text
  FROM facts WHERE scope LIKE 'owed-edges:%' ON CONFLICT (scope, key) DO NOTHING;
INSERT INTO facts(scope, key, value)
  SELECT 'effects:' || substr(f.scope, 6) || '/' || f.key, lpad((1000000 + e.n)::text, 20, '0'),
         json_build_object('kind', 'history', 'cycle', e.v->>'cycle_id', 'status', e.v->>'status',
                           'ended', (e.v->>'ended')::bigint, 'behind',
                           'git committer: its commits failed', 'outcomes', '[]'::json)::text
  FROM facts f, json_array_elements(f.value::json) WITH ORDINALITY e(v, n)
  WHERE f.scope LIKE 'owed:%' ON CONFLICT (scope, key) DO NOTHING;
DELETE FROM facts WHERE scope LIKE 'owed-edges:%' OR scope LIKE 'owed:%' OR scope LIKE 'carried:%';
