// Boyd beside the peers, for the drivers' --variants: the chosen ones, each once. bench/against-peers copies this file to where
// the drivers' own variants lie and sets: BOYD_PEER (the program), AGAINST_ONLY (ids), SLOW_N (jobs for peers below some
// thousands a second: their rates do not depend on it), AGAINST_WHAT (throughput, latency or crash).
const what = process.env.AGAINST_WHAT;
const file = what === 'crash' ? './crash-variants.mjs' : './variants.mjs';
const peers = (await import(file)).VARIANTS;
const only = process.env.AGAINST_ONLY.split(',').filter(Boolean);
const slow = /^(dbos|restate|langgraph)/;

// One process owns a SQLite file, so producer and worker are one process there: joined as the other embedded store is (LangGraph
// with SqliteSaver), with `self`. On PostgreSQL they are two, as every peer's.
const program = (store) => [process.env.BOYD_PEER, '--store', store];
const opts = { maxConcurrent: Number(process.env.BOYD_CONCURRENT || 4096), batch: 2000, inFlight: 4, agents: 4 };
// As many as the nearest peer in that race, graphile-worker, runs.
const gentle = { ...opts, maxConcurrent: Number(process.env.BOYD_CRASH_CONCURRENT || 24) };
const boyd = [
  { peer: 'boyd', id: 'boyd/sqlite', kind: 'none', self: true, cmd: program('sqlite'), opts, note: `SQLite (WAL, synchronous FULL), one process, ${opts.maxConcurrent} at once`, thr: {}, lat: { n: 500, pause: 1 } },
  { peer: 'boyd', id: 'boyd/postgres', kind: 'pg', cmd: program('postgres'), opts, note: `PostgreSQL, producer and worker apart, ${opts.maxConcurrent} at once`, thr: {}, lat: { n: 500, pause: 5 } },
];
// A job that does nothing is a script's answer, and those need no worker of their own. What a program or a model does has one.
const workers = { ...opts, commands: true };
boyd.push({ ...boyd[0], id: 'boyd/sqlite-workers', opts: workers, note: 'the same with an execution worker for each attempt', lat: undefined });
boyd.push({ ...boyd[1], id: 'boyd/postgres-workers', opts: workers, note: 'the same with an execution worker for each attempt', lat: undefined });
const crash = [
  { ...boyd[0], opts: gentle, note: `SQLite, ${gentle.maxConcurrent} at once; the harness hands every job in again, the queue keeps those it has`, capS: 60 },
  { ...boyd[1], opts: gentle, note: `PostgreSQL, ${gentle.maxConcurrent} at once`, capS: 60 },
];

const one = (v) => {
  const n = Number(process.env.SLOW_N || 0);
  return v.thr && n > 0 && slow.test(v.id) ? { ...v, thr: { ...v.thr, n } } : v;
};
export const VARIANTS = [...(what === 'crash' ? crash : boyd), ...peers].filter((v) => only.includes(v.id)).map(one);
