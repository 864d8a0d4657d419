/**
 * A process of its own on a file store, for tests that need several. It says on its standard output what it has done, one
 * JSON line each, after it has happened.
 */
import { existsSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { isWaymarkError } from '../../src/core/error.ts';
import { createIds } from '../../src/core/id.ts';
import { toJson } from '../../src/core/json/json.ts';
import { systemClock } from '../../src/core/time.ts';
import type { Message } from '../../src/protocol/message.ts';
import { emptyState, hashState, type SessionState } from '../../src/session/session-state.ts';
import type { Claim, RunSupport, Scope, Store } from '../../src/store/contract/store.ts';
import { fileStore } from '../../src/store/file/index.ts';
import { createLock } from '../../src/store/file/lock.ts';
import { sharedClock } from '../support/shared-clock.ts';

const [directory = '', command = '', name = '', count = '0'] = process.argv.slice(2);
const scope: Scope = { agent: 'chat' };
const id = createIds(systemClock);
const { clock } = sharedClock(`${directory}.clock`);
const store = fileStore(directory, { durability: 'normal', clock });

function runs(): RunSupport {
  if (store.runs === undefined) throw new Error('the file store has runs');
  return store.runs;
}

function tell(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** What the owner of the process sees of an error. */
function told(error: unknown): object {
  if (!isWaymarkError(error)) return { status: String(error) };
  return { status: error.status, message: error.message };
}

function say(role: 'user' | 'model', text: string): Message {
  return toJson({ role, content: [{ text }] }, 'message') as unknown as Message;
}

/** Claims as soon as the session is free. */
async function claim(sessionId: string): Promise<Claim> {
  for (;;) {
    try {
      return await runs().claim(scope, {
        runId: id(),
        sessionId,
        from: 'head',
        mode: 'attached',
        inputs: [{ message: say('user', 'input') }],
        ttl: 60_000,
        worker: name,
      });
    } catch (error) {
      if (!isWaymarkError(error) || error.status !== 'ABORTED') throw error;
      await systemClock.sleep(2);
    }
  }
}

/** One turn that counts in the custom state; now and then with an artifact, a checkpoint or a fork. */
async function turn(sessionId: string, no: number, padding = ''): Promise<void> {
  const held = await claim(sessionId);
  const base = held.parent && (await runs().load(scope, { snapshotId: held.parent.snapshotId }));
  const before = base?.state ?? emptyState;
  const n = Number((before.custom as { n?: number } | undefined)?.n ?? 0) + 1;
  const messages = [say('user', `${name} ${no}${padding}`), say('model', `answer ${n}`)];
  const state: SessionState = {
    history: before.history.append(messages),
    custom: toJson({ n }, 'custom'),
    artifacts:
      no % 5 === 4
        ? [{ name: 'report', parts: [{ text: `report ${name} ${no}` }] }]
        : before.artifacts,
  };
  const stateHash = hashState(state);
  if (no % 3 === 2) {
    await runs().checkpoint(held, {
      ...(base === undefined ? {} : { base }),
      state,
      stateHash,
      inputsDone: 0,
      midTurn: true,
    });
  }
  const { snapshot } = await runs().commit(held, {
    snapshotId: held.runId,
    ...(base === undefined ? {} : { base, parentId: base.snapshotId }),
    turnIndex: held.parent === undefined ? 0 : held.parent.turnIndex + 1,
    event: 'turnEnd',
    status: 'succeeded',
    finishReason: 'stop',
    end: true,
    stateHash,
    state,
  });
  tell({ snapshotId: snapshot.snapshotId, sessionId, n });
  if (no % 7 === 6) {
    const target = { sessionId: `fork of ${snapshot.snapshotId}`, snapshotId: id() };
    await store.timeline?.fork(scope, snapshot.snapshotId, target);
    tell({ ...target, n });
  }
}

/** Takes turns on one session, so many or for ever. */
async function takeTurns(sessionId: string, most: number): Promise<void> {
  for (let no = 0; no < most; no++) await turn(sessionId, no);
}

/** Works on a run until somebody stops it. */
async function waitForStop(used: Store): Promise<void> {
  const held = await runs().claim(scope, {
    runId: id(),
    sessionId: name,
    from: 'head',
    mode: 'accepted',
    inputs: [],
    ttl: 60_000,
    worker: name,
  });
  const stopped = new Promise<void>((resolve) => {
    used.abort?.onChange(held.runId, () => {
      void runs()
        .heartbeat(held)
        .then((signal) => signal === 'stop' && resolve());
    });
  });
  tell({ runId: held.runId });
  for (let seq = 0; seq < 5; seq++) {
    await used.events?.append(held, [{ attempt: 1, seq, chunk: { status: seq } }]);
  }
  // Listening does not keep a process alive.
  const alive = setInterval(() => {}, 1000);
  await stopped;
  tell({ stopped: true });
  clearInterval(alive);
}

/** Holds the lock until this file is there, and writes to it as the last thing. */
async function holdLock(file: string): Promise<void> {
  const lock = createLock(join(directory, 'lock'), { timeout: 60_000 });
  await lock.hold(() => {
    writeSync(1, `${JSON.stringify({ held: true })}\n`);
    while (!existsSync(file)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    writeFileSync(file, 'released');
  });
  lock.close();
}

/** Takes turns until a file cannot grow any more, and then one more elsewhere. */
async function fill(): Promise<void> {
  try {
    for (let no = 0; ; no++) await turn(name, no, 'x'.repeat(3000));
  } catch (error) {
    tell(told(error));
  }
  await turn('elsewhere', 0);
}

/** Reads and writes as somebody who may only read. */
async function read(): Promise<void> {
  if (process.getuid?.() === 0) {
    process.setgid?.(65_534);
    process.setuid?.(65_534);
  }
  const snapshot = await store.getSnapshot(scope, { sessionId: name });
  tell({ n: snapshot?.state?.messages?.length });
  const sessions = await store.timeline?.listSessions(scope);
  tell({ n: sessions?.items.length });
  await turn(name, 0).catch((error: unknown) => tell(told(error)));
}

switch (command) {
  case 'fill':
    await fill();
    break;
  case 'read':
    await read();
    break;
  case 'hold':
    await holdLock(name);
    break;
  case 'turns':
    await takeTurns(name.replace(/ .*/, ''), Number(count) || Number.POSITIVE_INFINITY);
    break;
  case 'wait':
    await waitForStop(store);
    break;
  default:
    throw new Error(`no such command: ${command}`);
}
await store.close?.();
