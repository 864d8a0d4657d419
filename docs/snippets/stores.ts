import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { scriptedModel } from 'waymark/testing';

const model = scriptedModel({ patterns: [], otherwise: 'Hello.' });
const key = randomBytes(32);
const oldKey = randomBytes(32);

// #region stores

import { memoryStore, waymark } from 'waymark';
import { fileStore } from 'waymark/file';
import { libsqlStore } from 'waymark/libsql';
import { postgresStore } from 'waymark/postgres';
import { sqliteStore } from 'waymark/sqlite';

const inMemory = memoryStore();
const inOneFile = sqliteStore('sessions.db');
const inPlainFiles = fileStore('./sessions');
const inLibsql = libsqlStore({ url: 'file:libsql.db' }); // or libsql://…, with an authToken
const inPostgres = postgresStore({ connectionString: process.env.DATABASE_URL });
// #endregion
assert.deepEqual(
  [inMemory, inOneFile, inPlainFiles, inLibsql, inPostgres].map(({ name }) => name),
  ['memory', 'sqlite', 'file', 'libsql', 'postgres'],
);

// #region encryption
const encrypted = sqliteStore('encrypted.db', { encryption: { keys: [key, oldKey] } });
await encrypted.rotateKeys(); // afterwards the old key is no longer needed
// #endregion

const app = waymark({ model, store: inOneFile });
const chat = app.defineAgent({ name: 'chat' });
const { sessionId } = await chat.run('hello');
// #region maintenance
const { maintenance } = inOneFile;

await maintenance?.prune({ olderThan: 30 * 86_400_000, keepLast: 10, dropSessions: true });
await maintenance?.eraseOwner('ada');
const faults = await maintenance?.verify(); // [] when there are no problems

const document = await maintenance?.exportSession({ agent: 'chat' }, sessionId);
if (document) await inPlainFiles.maintenance?.importSession({ agent: 'chat' }, document);
// #endregion
assert.deepEqual(faults, []);
assert.ok(await inPlainFiles.timeline?.getSession({ agent: 'chat' }, sessionId));

// #region backup
import { backupSqlite, restoreSqlite } from 'waymark/sqlite';

const { sessions } = await backupSqlite('sessions.db', 'nightly.db');
await restoreSqlite('nightly.db', 'restored.db');
// #endregion
assert.ok(sessions > 0);

// #region minimal
import type { Snapshot, SnapshotStore } from 'waymark';

const rows = new Map<string, Snapshot>();
/** The smallest store. Calls that need more (claims, watch, timeline) fail with FAILED_PRECONDITION. */
const tiny: SnapshotStore = {
  async getSnapshot(_, lookup) {
    if ('snapshotId' in lookup) return rows.get(lookup.snapshotId);
    return [...rows.values()].findLast(({ sessionId }) => sessionId === lookup.sessionId);
  },
  async saveSnapshot(_, snapshotId, mutate) {
    const next = mutate(rows.get(snapshotId));
    if (next) rows.set(snapshotId, next);
    return rows.get(snapshotId);
  },
};
// #endregion
const small = waymark({ model, store: tiny }).defineAgent({ name: 'small' });
const kept = await small.run('hello');
assert.equal((await small.run('again', { sessionId: kept.sessionId })).finishReason, 'stop');
assert.equal(small.metadata.timeline, false);
await Promise.all([app.close(), encrypted.close?.(), inPlainFiles.close?.(), inPostgres.close?.()]);
