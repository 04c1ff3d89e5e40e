-- The parts of schema $1: whose, what and how. The name of the schema is taken out of definitions.
WITH s AS (
  SELECT oid FROM pg_namespace WHERE nspname = $1::text
), c AS (
  SELECT c.* FROM pg_class c JOIN s ON c.relnamespace = s.oid
), parts AS (
  SELECT 1 AS rank, relname::text AS tbl, 'table ' || relname AS name, '' AS form
  FROM c WHERE relkind IN ('r', 'p')
  UNION ALL
  SELECT 2, relname::text, 'column ' || attname || ' of table ' || relname,
         format_type(atttypid, atttypmod) || CASE WHEN attnotnull THEN ' not null' ELSE '' END
  FROM c JOIN pg_attribute a ON a.attrelid = c.oid
  WHERE relkind IN ('r', 'p') AND attnum > 0 AND NOT attisdropped
  UNION ALL
  SELECT 3, t.relname::text, 'index ' || c.relname || ' of table ' || t.relname,
         replace(pg_get_indexdef(c.oid), $1::text || '.', '')
  FROM c JOIN pg_index i ON i.indexrelid = c.oid JOIN pg_class t ON t.oid = i.indrelid
  UNION ALL
  SELECT 4, relname::text, 'trigger ' || tgname || ' of table ' || relname, ''
  FROM c JOIN pg_trigger g ON g.tgrelid = c.oid WHERE NOT tgisinternal
  UNION ALL
  SELECT 5, '', 'view ' || relname, '' FROM c WHERE relkind = 'v'
  UNION ALL
  SELECT 5, '', 'sequence ' || relname, '' FROM c WHERE relkind = 'S'
  UNION ALL
  SELECT 5, '', 'function ' || proname, '' FROM pg_proc p JOIN s ON p.pronamespace = s.oid
)
SELECT tbl, name, form FROM parts ORDER BY rank, name
