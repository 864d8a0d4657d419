import assert from 'node:assert/strict';
import { waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { scriptedModel } from 'waymark/testing';

const model = scriptedModel({ patterns: [], otherwise: 'All quiet.' });
const app = waymark({ model, store: sqliteStore('schedules.db') });
const writer = app.defineAgent({ name: 'writer', system: 'You write short reports.' });

// #region cron
app.schedule({
  key: 'digest',
  cron: '0 7 * * 1-5', // 7:00, Monday to Friday
  timeZone: 'Europe/Lisbon',
  agent: writer,
  input: 'Write the digest of yesterday.',
});
// #endregion

// #region every
app.schedule({
  key: 'check',
  every: 900_000, // at :00, :15, :30 and :45
  agent: writer,
  input: (due) => `Check the inbox. It is ${due.toISOString()}.`,
  owner: 'ann',
});
// #endregion

// #region list
const [digest] = await app.listSchedules();
console.log(digest?.key, digest?.nextAt, digest?.last?.sessionId);
const run = await app.runSchedule('digest'); // now, besides its times
// #endregion
assert.equal(digest?.key, 'digest');
assert.equal((await run.wait()).text, 'All quiet.');
await app.close();
