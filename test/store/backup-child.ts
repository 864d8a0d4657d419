// A process that takes turns in several sessions without pause, and says which have ended: `node backup-child.ts <store>`.
import { type Clock, systemClock } from '../../src/core/time.ts';
import { pgBossEngine } from '../../src/engine/pg-boss/index.ts';
import { type App, type Store, waymark } from '../../src/index.ts';
import { fileStore } from '../../src/store/file/index.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';

/** A store that processes of the test share. */
export type BackupStore =
  | { readonly kind: 'sqlite' | 'file'; readonly path: string }
  | {
      readonly kind: 'postgres';
      readonly connectionString: string;
      readonly schema: string;
      /** Whether background runs are in the queue of pg-boss. @default false */
      readonly queue?: boolean;
    };

export function openStore(where: BackupStore, clock: Clock = systemClock): Store {
  switch (where.kind) {
    case 'sqlite':
      return sqliteStore(where.path, { clock });
    case 'file':
      return fileStore(where.path, { clock });
    case 'postgres':
      return postgresStore({
        connectionString: where.connectionString,
        schema: where.schema,
        max: 4,
      });
  }
}

/** Longer than the process that is backed up ever stands still. */
export const claimTtl = 60_000;

/** An app whose `counter` counts its turns; `sleeper` never wakes up in the process that is backed up. */
export function openBackupApp(
  where: BackupStore,
  { sleeps, clock = systemClock }: { readonly sleeps: boolean; readonly clock?: Clock },
): App {
  const queued = where.kind === 'postgres' && where.queue === true;
  const app = waymark({
    store: openStore(where, clock),
    ...(queued && { engine: pgBossEngine({ connectionString: where.connectionString }) }),
    clock,
    claimTtl,
    onError: () => {},
  });
  app.defineCustomAgent({ name: 'counter' }, (session) =>
    session.run(async () => {
      const n = ((session.custom as number | undefined) ?? 0) + 1;
      session.setCustom(n);
      session.addArtifacts({ name: `of ${n % 3}`, parts: [{ text: `${n}` }] });
      session.addMessages({ role: 'model', content: [{ text: `turn ${n}` }] });
    }),
  );
  app.defineCustomAgent({ name: 'sleeper' }, (session) =>
    session.run(async () => {
      if (sleeps) await new Promise(() => {});
      session.addMessages({ role: 'model', content: [{ text: 'awake' }] });
    }),
  );
  return app;
}

async function takeTurns(app: App, sessionId: string): Promise<void> {
  const counter = app.agent('counter');
  for (let n = 1; ; n++) {
    const { snapshotId = '' } = await counter.run('go', {
      sessionId,
      requestId: `${sessionId} ${n}`,
    });
    process.stdout.write(`ack ${sessionId} ${n}\n`);
    if (n % 7 === 0) await counter.fork(snapshotId);
  }
}

const [given] = process.argv.slice(2);
if (given !== undefined && import.meta.main) {
  const app = openBackupApp(JSON.parse(given) as BackupStore, { sleeps: true });
  await app.ready();
  const { snapshotId = '' } = await app
    .agent('sleeper')
    .run({ message: { role: 'user', content: [{ text: 'wait' }] }, detach: true });
  process.stdout.write(`sleeper ${snapshotId}\n`);
  for (const sessionId of ['a', 'b', 'c']) void takeTurns(app, sessionId);
}
