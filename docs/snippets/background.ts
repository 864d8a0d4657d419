import assert from 'node:assert/strict';
import { agentTool, backgroundAgentTools, localEngine, waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { scriptedModel } from 'waymark/testing';

const model = scriptedModel({
  patterns: [],
  otherwise: { chunks: ['Long ', 'work ', 'done.'], chunkDelay: 20 },
});
const app = waymark({ model, store: sqliteStore('background.db') });

// #region define
const ended: string[] = [];
const researcher = app.defineAgent({
  name: 'researcher',
  description: 'Reads sources and reports.',
  onFinish: ({ snapshot }) => {
    ended.push(snapshot.status); // 'succeeded', 'failed' or 'aborted'
  },
});
// #endregion

// #region detach
const run = await researcher.start('Read everything about tides');
console.log(run.id, run.sessionId);
// #endregion

// #region watch
for await (const event of run.watch()) {
  if (event.type === 'chunk') console.log(event.id, event.chunk);
  if (event.type === 'reset') console.log('another process took over, attempt', event.attempt);
  if (event.type === 'end') console.log(event.snapshot.status);
}
// Later, from any process, continue after the last event you saw:
const rest = researcher.attach(run.id).watch({ after: '1.3' });
// #endregion
for await (const event of rest)
  if (event.type === 'end') assert.equal(event.snapshot.status, 'succeeded');

// #region wait
const done = await run.wait(); // rejects with a TurnError if the run failed
console.log(done.text, await run.status()); // Long work done. succeeded
// #endregion
assert.equal(done.text, 'Long work done.');
assert.equal(await run.status(), 'succeeded');
assert.deepEqual(ended, ['succeeded']);

// #region middle
const conn = researcher.streamBidi();
await conn.sendText('Start here');
for await (const chunk of conn.receive()) if (chunk.modelChunk) break;
const detached = await conn.detach(); // the running turn and the queued inputs continue in the background
// #endregion

// #region abort
const after = await researcher.attach(detached).abort(); // 'aborted'
// #endregion
assert.equal(after, 'aborted');
while (!ended.includes('aborted')) await new Promise((resolve) => setImmediate(resolve));

// #region partial
// To keep what the run had done, save its partial state. The session then continues from there.
const kept = await researcher.restore(detached, { partial: true });
// #endregion
assert.equal(kept.event, 'edit');

// #region attempts
const careful = waymark({
  model,
  store: sqliteStore('background.db'),
  engine: localEngine({ attempts: 5 }), // 3 by default; `pgBossEngine` has the same option
});
// #endregion
await careful.close();

// #region dead-letters
for (const { snapshotId, attempts } of (await researcher.listDeadRuns()).items) {
  console.log(`${snapshotId} crashed ${attempts.length} times: ${attempts.at(-1)?.error}`);
  await researcher.retryRun(snapshotId);
}
// #endregion

// #region sub-agents
const editor = app.defineAgent({
  name: 'editor',
  tools: [
    agentTool(researcher), // in the foreground: its chunks and artifacts are streamed under its name
    ...backgroundAgentTools(researcher, { name: 'research' }), // research_start, _check, _wait, _abort
  ],
});
// #endregion
assert.equal((await editor.run('hello')).finishReason, 'stop');
await app.close();
