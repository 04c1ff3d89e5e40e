-- Counting a million rows at each status query would stop the queue meanwhile.
CREATE TABLE dispatch_counts(
  kernel_id TEXT NOT NULL,
  status TEXT NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY(kernel_id, status)
) STRICT, WITHOUT ROWID;
INSERT INTO dispatch_counts SELECT kernel_id, status, count(*) FROM dispatches GROUP BY 1, 2;
CREATE TRIGGER dispatch_counts_insert AFTER INSERT ON dispatches BEGIN
  INSERT INTO dispatch_counts VALUES(new.kernel_id, new.status, 1)
    ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER dispatch_counts_delete AFTER DELETE ON dispatches BEGIN
  UPDATE dispatch_counts SET n = n - 1 WHERE kernel_id = old.kernel_id AND status = old.status;
END;
CREATE TRIGGER dispatch_counts_update AFTER UPDATE OF status ON dispatches
WHEN old.status <> new.status BEGIN
  UPDATE dispatch_counts SET n = n - 1 WHERE kernel_id = old.kernel_id AND status = old.status;
  INSERT INTO dispatch_counts VALUES(new.kernel_id, new.status, 1)
    ON CONFLICT DO UPDATE SET n = n + 1;
END;
