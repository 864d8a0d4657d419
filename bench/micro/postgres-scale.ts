// Sizes and times of a large Postgres store: `node bench/micro/postgres-scale.ts [sessions] [turns]`. It runs one session with the library, and
// copies its rows by SQL. A million sessions of ten turns need about 10 GB of disk.
import pg from 'pg';
import { waymark } from '../../src/index.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { startPostgres } from '../../test/support/postgres.ts';

const sessions = Number(process.argv[2] ?? 2_000);
const turns = Number(process.argv[3] ?? 10);
/** Sessions of each owner. */
const perOwner = 100;
const rowsPerBranch = 2 ** 22;

const postgres = await startPostgres({
  settings: { shared_buffers: '512MB', max_wal_size: '8GB' },
});
const { connectionString } = postgres;
const admin = new pg.Pool({ connectionString, max: 1 });
const store = postgresStore({ connectionString });
const app = waymark({ store, work: false });
const agent = app.defineCustomAgent({ name: 'chat' }, async (session) => {
  await session.run(async () => {
    session.addMessages({ role: 'model', content: [{ text: 'an answer '.repeat(40) }] });
  });
});

/** Milliseconds of a call, the median and the slowest of some. */
async function time(what: string, call: (no: number) => Promise<unknown>): Promise<void> {
  const took: number[] = [];
  for (let no = 0; no < 40; no++) {
    const started = performance.now();
    await call(no);
    took.push(performance.now() - started);
  }
  took.sort((a, b) => a - b);
  console.log(`${what}: ${took[20]?.toFixed(1)} ms (p50), ${took[37]?.toFixed(1)} ms (p95)`);
}

async function measure(owner: string): Promise<void> {
  await time('a turn of a new session', (no) =>
    agent.runText('hi', { sessionId: `new-${no}-${Math.random()}`, owner }),
  );
  await time('a turn of an old session', (no) =>
    agent.runText('hi', { sessionId: `s-${no % perOwner}`, owner }),
  );
  await time('list 50 sessions of an owner', () => agent.listSessions({ owner, limit: 50 }));
  await time('search the sessions of an owner', () =>
    agent.listSessions({ owner, query: 'answer' }),
  );
  await time('the last 50 messages', () =>
    agent.getSession('s-7', { owner, messages: { last: 50 } }),
  );
}

/** Copies the rows of a table, with some columns as they are in copy number `k`. */
async function copy(table: string, where: string, columns: Record<string, string>): Promise<void> {
  const { rows } = await admin.query(
    `SELECT column_name AS name FROM information_schema.columns WHERE table_schema = 'waymark' AND table_name = $1`,
    [table],
  );
  const names = rows.map(({ name }) => `"${name}"`).join(', ');
  const values = rows.map(({ name }) => columns[name] ?? `t."${name}"`).join(', ');
  const override = table === 'messages' ? '' : 'OVERRIDING SYSTEM VALUE';
  await admin.query(
    `INSERT INTO waymark.${table}(${names}) ${override}
     SELECT ${values} FROM generate_series(1::bigint, ${sessions}) k, waymark.${table} t WHERE ${where}`,
  );
}

console.log('Empty:');
const template = { sessionId: 'template', owner: 'owner-template' };
for (let turn = 0; turn < turns; turn++) await agent.runText('a question', template);
await measure('owner-alone');

const { rows: found } = await admin.query(
  `SELECT z.row_id AS session, b.row_id AS branch, (SELECT MIN(row_id) FROM waymark.snapshots s WHERE s.session = z.row_id) AS first,
     (SELECT MAX(row_id) + 1000 FROM waymark.snapshots) AS last, (SELECT MAX(row_id) + 1000 FROM waymark.sessions) AS sessions,
     (SELECT MAX(row_id) + 1000 FROM waymark.branches) AS branches
   FROM waymark.sessions z JOIN waymark.branches b ON b.session = z.row_id WHERE z.id = 'template'`,
);
const { session, branch, first, last, sessions: afterSessions, branches } = found[0];
const started = performance.now();
// Snapshots of other sessions do not lie between those of the template, which ran alone.
const snapshot = (column: string): string => `${last} + k * ${turns} + ${column} - ${first}`;
await copy('sessions', `t.row_id = ${session}`, {
  row_id: `${afterSessions} + k`,
  owner: `'owner-' || k / ${perOwner}`,
  id: `'s-' || k % ${perOwner}`,
  head: snapshot('t.head'),
  branch_end: snapshot('t.branch_end'),
});
await copy('branches', `t.row_id = ${branch}`, {
  row_id: `${branches} + k`,
  session: `${afterSessions} + k`,
});
await copy(
  'messages',
  `t.id >= ${branch}::bigint * ${rowsPerBranch} AND t.id < (${branch}::bigint + 1) * ${rowsPerBranch}`,
  {
    id: `(${branches} + k) * ${rowsPerBranch} + t.id % ${rowsPerBranch}`,
  },
);
await copy('snapshots', `t.session = ${session}`, {
  row_id: snapshot('t.row_id'),
  session: `${afterSessions} + k`,
  parent: snapshot('t.parent'),
  branch: `${branches} + k`,
  id: `decode(md5(k || '-' || t.row_id), 'hex')`,
});
for (const table of ['sessions', 'branches', 'snapshots']) {
  await admin.query(
    `SELECT setval(pg_get_serial_sequence('waymark.${table}', 'row_id'), (SELECT MAX(row_id) FROM waymark.${table}))`,
  );
}
await admin.query('VACUUM (ANALYZE)');
await admin.query('SELECT pg_stat_reset()');
console.log(
  `\n${sessions} sessions of ${turns} turns, made in ${((performance.now() - started) / 1000).toFixed(0)} s:`,
);
const sizes = await admin.query(
  `SELECT relname AS name, reltuples::bigint AS rows, pg_table_size(oid) AS table, pg_indexes_size(oid) AS indexes FROM pg_class
   WHERE relkind = 'r' AND relnamespace = 'waymark'::regnamespace AND reltuples > 1000 ORDER BY pg_total_relation_size(oid) DESC`,
);
for (const { name, rows, table, indexes } of sizes.rows) {
  console.log(
    `${name}: ${rows} rows, ${(table / 1e6).toFixed(0)} MB, indexes ${(indexes / 1e6).toFixed(0)} MB`,
  );
}
await measure(`owner-${Math.floor(sessions / perOwner / 2)}`);
const scans = await admin.query(
  `SELECT relname, seq_scan, seq_tup_read FROM pg_stat_user_tables WHERE schemaname = 'waymark' AND seq_tup_read > $1`,
  [sessions * turns],
);
console.log(
  'Tables that were read as a whole:',
  scans.rows.map(({ relname, seq_scan }) => `${relname} ${seq_scan} times`).join(', ') || 'none',
);
const pruned = performance.now();
await store.maintenance?.prune({ keepLast: 5 }, { agent: 'chat', owner: 'owner-1' });
console.log(`prune of one owner: ${(performance.now() - pruned).toFixed(0)} ms`);
await app.close();
await admin.end();
await postgres.stop();
