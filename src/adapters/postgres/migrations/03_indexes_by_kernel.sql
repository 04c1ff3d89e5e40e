-- Newest first within a kernel, and what has finished in it since. dispatches_ended takes over all
-- duties of dispatches_finished: an update that changes the status writes to every index.
CREATE INDEX dispatches_newest ON dispatches(kernel_id, dispatch_id);
CREATE INDEX dispatches_ended ON dispatches(kernel_id, finished_at) INCLUDE (status)
  WHERE finished_at IS NOT NULL;
DROP INDEX dispatches_finished;
