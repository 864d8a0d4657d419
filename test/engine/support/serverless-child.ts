import pg from 'pg';
import { pgBossEngine } from '../../../src/engine/pg-boss/index.ts';
import { waymark } from '../../../src/index.ts';
import { handler } from '../../../src/server/index.ts';
import { postgresStore } from '../../../src/store/postgres/index.ts';
import { scriptedModel } from '../../../src/testing/scripted-model.ts';

// A short-lived process, as a serverless platform starts them: it answers one request, or works until there is nothing to do.
// Prints what it has done, with the largest number of connections that it had.
const [url = '', what = '', body = ''] = process.argv.slice(2);

let open = 0;
let most = 0;
// Every connection of the process counts, whoever opens it.
const client = pg.Client.prototype as unknown as { connect(...args: unknown[]): unknown };
const { connect } = client;
client.connect = function counted(this: pg.Client, ...args) {
  most = Math.max(most, ++open);
  this.once('end', () => open--);
  return connect.apply(this, args);
};

const pool = new pg.Pool({ connectionString: url, max: 2 });
pool.on('error', () => {});
const app = waymark({
  store: postgresStore({ pool }),
  engine: pgBossEngine({ pool }),
  model: scriptedModel({
    patterns: [],
    otherwise: ({ messages }) => `${messages.length} messages`,
  }),
  work: false,
});
app.defineAgent({ name: 'chat' });

async function answer(): Promise<unknown> {
  const fetch = handler(app);
  const response = await fetch(
    new Request('http://localhost/agents/chat/turns', { method: 'POST', body }),
  );
  return await response.json();
}

const result = what === 'work' ? await app.work({ timeout: 60_000 }) : await answer();
await app.close({ grace: 0 });
await pool.end();
console.log(JSON.stringify({ result, most }));
