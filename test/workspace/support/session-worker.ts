import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tool, waymark } from '../../../src/index.ts';
import { sqliteStore } from '../../../src/store/sqlite/index.ts';
import { scriptedModel } from '../../../src/testing/index.ts';
import { directory } from '../../../src/workspace/index.ts';

// Restores a snapshot, or runs a turn whose tool changes files: node session-worker.js <folder> [snapshot].
const [, , base = '', snapshotId] = process.argv;
const root = join(base, 'project');
const act = tool({ name: 'act', description: 'Changes files.' }, () => {
  for (let at = 0; at < 20; at++) writeFileSync(join(root, `changed-${at}`), `by the turn ${at}`);
  console.log('begins');
});
const model = scriptedModel({
  patterns: [[/change/, { toolCalls: [{ name: 'act' }] }]],
  otherwise: 'Done.',
  afterTools: () => 'Done.',
});
const app = waymark({ store: sqliteStore(join(base, 'store.db')), model, work: false });
const coder = app.defineAgent({ name: 'coder', workspace: directory(root), tools: [act] });
await coder.listSessions();
if (snapshotId === undefined) {
  await coder.run('change', { sessionId: 's' });
} else {
  console.log('begins');
  await coder.restore(snapshotId);
}
console.log('ends');
await app.close();
