import { appendFileSync } from 'node:fs';
import { waymark } from '../../../src/app.ts';
import { fileStore } from '../../../src/store/file/index.ts';
import { sqliteStore } from '../../../src/store/sqlite/index.ts';
import { sharedClock } from '../../support/shared-clock.ts';

/** A process with a schedule. It writes a line to `log` for each turn that begins. */
const { kind, path, time, log } = JSON.parse(process.argv[2] ?? '{}') as Record<string, string>;
const { clock } = sharedClock(time ?? '');
const store =
  kind === 'file' ? fileStore(path ?? '', { clock }) : sqliteStore(path ?? '', { clock });
const app = waymark({ store, clock, onError: (error) => console.error(process.pid, error) });
const agent = app.defineCustomAgent({ name: 'writer' }, async (session) => {
  await session.run(async () => {
    appendFileSync(log ?? '', `${session.id}\n`);
    session.addMessages({ role: 'model', content: [{ text: 'written' }] });
  });
});
app.schedule({ key: 'hourly', every: 3_600_000, agent, input: 'Write.' });
await app.ready();
process.stdout.write('ready\n');
