import assert from 'node:assert/strict';
import { memoryStore, on, onChange, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';

const model = scriptedModel({
  patterns: [],
  otherwise: ({ messages }) => `Answer ${messages.length}.`,
});
const app = waymark({ model, store: memoryStore() });
const story = app.defineAgent({ name: 'story' });

// #region turns
const chat = story.chat();
const one = await chat.send('Once upon a time');
const two = await chat.send('there was a fox');
const three = await chat.send('who went home');
// #endregion
const { sessionId } = one;

// #region look
const shot = await story.getSnapshot(two); // an output, a snapshot or an id
shot?.state?.messages; // the conversation as it was after the second turn
shot?.stateHash; // the same content has the same hash in every store

const timeline = await story.listSnapshots(sessionId, { includeOrphaned: true });
// #endregion
assert.equal(shot?.state?.messages?.length, 4);
assert.equal(timeline.items.length, 3);

// #region restore
await story.restore(one); // the head moves; nothing is deleted
await story.run('there was a bear', { sessionId });

await story.restore(three); // return to the first branch
// #endregion

// #region from
// In one step: the turn starts from that snapshot and moves the head when it is saved.
const bear = await story.run('there was a bear', { from: one });

// From the beginning of the session: another first turn.
const again = await story.run('Long ago', { sessionId, from: null });
// #endregion
assert.equal((await story.getSession(sessionId))?.headId, again.snapshotId);
await story.restore(bear);

// #region if-head
// Two tabs show the same session. The one that acts on an old head gets ABORTED and changes nothing.
await story.restore(three, { ifHead: bear });
const refused = await story.restore(two, { ifHead: bear }).catch((error) => error);
refused.details.headId; // the current head
// #endregion
assert.equal(refused.status, 'ABORTED');
assert.equal(refused.details.headId, three.snapshotId);

// #region fork
const fork = await story.fork(two); // a new session that shares the history
await story.run('who stayed out', { sessionId: fork.sessionId });
// #endregion
assert.notEqual(fork.sessionId, sessionId);

// #region diff
const { messages, custom, artifacts } = await story.diff(three, bear);
messages.added; // messages that only the second snapshot has
messages.removed;
custom; // an RFC 6902 patch
artifacts; // [{ name, change: 'added' | 'removed' | 'changed', patch? }]
// #endregion
assert.equal(messages.added.length, 2);
assert.equal(messages.removed.length, 4);
assert.deepEqual([custom, artifacts], [[], []]);

// #region edit
const budget = z.object({ budget: z.number() });
const planner = app.defineAgent({ name: 'planner', state: budget, initialState: { budget: 900 } });
const plan = await planner.run('a weekend');
const edited = await planner.edit(
  plan,
  { custom: { budget: 600 } }, // or `customPatch`, `artifacts`, `removeArtifacts`
  { by: 'ada', reason: 'The budget was in another currency.' },
);
edited.event; // 'edit': a new snapshot; the session continues from it
await planner.run('now plan again', { sessionId: edited.sessionId });
// #endregion
assert.deepEqual([edited.event, edited.edit?.by], ['edit', 'ada']);

// #region label
await story.label(three, 'the good ending'); // retention keeps labelled snapshots
await story.updateSession(sessionId, { title: 'The fox', metadata: { mood: 'calm' } });
// #endregion

// #region find
const found = await story.listSessions({ query: 'fox' }); // id, title, metadata and messages
const kept = await story.listSessions({ labelled: true }); // or failed, or waiting
// #endregion
assert.equal(
  found.items.some((session) => session.sessionId === sessionId),
  true,
);
assert.equal(kept.items.length, 1);

// #region policy
app.defineAgent({ name: 'every-step', snapshot: on('turnEnd', 'toolIterationEnd') });
app.defineAgent({ name: 'changes', snapshot: onChange('turnEnd') });
app.defineAgent({ name: 'milestones', snapshot: ({ turnIndex }) => turnIndex % 10 === 0 });
app.defineAgent({ name: 'latest-only', snapshot: 'never' });
// #endregion

// #region erase
const isGone = await story.deleteSession(fork.sessionId);
// #endregion
assert.equal(isGone, true);
await app.close();
