-- Newest first within a kernel, and what has finished in it since. The kernels are the ones of
-- dispatch_counts, so that finished rows of all of them need no index of their own.
CREATE INDEX dispatches_newest ON dispatches(kernel_id, dispatch_id);
CREATE INDEX dispatches_ended ON dispatches(kernel_id, finished_at) WHERE finished_at IS NOT NULL;
DROP INDEX dispatches_finished;
