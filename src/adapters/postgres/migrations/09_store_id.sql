-- By which a home knows its store again.
INSERT INTO facts(scope, key, value) VALUES('store', 'id', gen_random_uuid()::text)
  ON CONFLICT (scope, key) DO NOTHING;
