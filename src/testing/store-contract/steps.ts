import { expect } from 'vitest';
import { emptyState, hashState, type SessionState } from '../../session/session-state.ts';
import type { Claim, Scope, StateBase } from '../../store/contract/store.ts';
import type { Change, Command } from './commands.ts';
import { copyOf, expectRow } from './compare.ts';
import { exchange, type Kit, say, stateOf } from './kit.ts';
import {
  addRow,
  headOf,
  type Model,
  type ModelRow,
  type ModelSession,
  moveHead,
  pruneRows,
  sessionOf,
} from './model.ts';

/** A store and the reference model. */
export interface World {
  readonly kit: Kit;
  readonly scope: Scope;
  readonly model: Model;
  /** The result of the last commit to each session. */
  readonly cache: Map<string, StateBase>;
  /** Generates texts from a small set, so that some repeat. */
  count: number;
}

/** An unused scope of the store. */
export function createWorld(kit: Kit): World {
  const scope = { agent: kit.scope.agent, owner: kit.id() };
  return { kit, scope, model: new Map(), cache: new Map(), count: 0 };
}

interface Picked {
  readonly session: ModelSession;
  readonly row: ModelRow;
}

/** Any succeeded snapshot. */
function pickRow({ model }: World, pick: number): Picked | undefined {
  const all = [...model.values()].flatMap((session) =>
    [...session.rows.values()]
      .filter((row) => row.status === 'succeeded')
      .map((row) => ({ session, row })),
  );
  return all[pick % Math.max(1, all.length)];
}

/** Applies a step to the store and to the model. */
export async function take(world: World, step: Command): Promise<void> {
  const picked = 'pick' in step ? pickRow(world, step.pick) : undefined;
  switch (step.kind) {
    case 'turn':
      return takeTurn(world, step);
    case 'detached':
      return takeDetached(world, step);
    case 'dies':
      return die(world, `s${step.session}`);
    case 'restore':
      return picked && restore(world, picked);
    case 'fork':
      return picked && fork(world, picked);
    case 'label':
      return picked && label(world, picked, step.label);
    case 'prune':
      return prune(world, step);
    case 'erase':
      return erase(world, `s${step.session}`);
    case 'reimport':
      return reimport(world, `s${step.session}`);
  }
}

async function takeTurn(world: World, step: Extract<Command, { kind: 'turn' }>): Promise<void> {
  const { kit, scope, model } = world;
  const picked = step.from === undefined ? undefined : pickRow(world, step.from);
  const session = picked?.session ?? sessionOf(model, `s${step.session}`);
  const from = step.root ? null : picked ? { snapshotId: picked.row.id } : 'head';
  const held = await kit.claim(session.id, { from }, scope);
  const start = step.root ? undefined : (picked?.row ?? headOf(session));
  expect(held.parent?.snapshotId).toBe(start?.id);
  expect(held.headId).toBe(session.head);
  let base = await baseOf(world, held, step.cached);
  if (step.middle) base = await takeMiddle(world, session, held, base);
  const state = change(world, base?.state ?? emptyState, step.change, step.size);
  const status = step.outcome === 'failed' ? 'failed' : 'succeeded';
  const write = {
    ...(base && { base }),
    state,
    status,
    listed: step.outcome !== 'unlisted',
    finishReason: step.outcome === 'interrupted' ? 'interrupted' : 'stop',
  } as const;
  const committed = await kit.commit(held, write, scope);
  if (status === 'succeeded') world.cache.set(session.id, committed.base);
  addRow(session, {
    ...describeRow(held.runId, held, state),
    status,
    interrupted: step.outcome === 'interrupted',
    listed: write.listed,
    start: held.parent?.snapshotId,
    base: base?.snapshotId,
  });
  expectRow(session, committed.snapshot);
}

async function takeMiddle(
  world: World,
  session: ModelSession,
  held: Claim,
  base: StateBase | undefined,
): Promise<StateBase> {
  const { kit, scope } = world;
  const state = change(world, base?.state ?? emptyState, 'append', 1);
  const snapshotId = kit.id();
  const event = 'toolIterationEnd' as const;
  const write = { ...(base && { base }), state, snapshotId, event, end: false };
  const committed = await kit.commit(held, write, scope);
  const row = { ...describeRow(snapshotId, held, state), event, base: base?.snapshotId };
  const start = held.parent?.snapshotId;
  addRow(session, { ...row, start, within: true, status: 'succeeded', interrupted: false });
  return committed.base;
}

function describeRow(id: string, held: Claim, state: SessionState) {
  const turnIndex = held.parent === undefined ? 0 : held.parent.turnIndex + 1;
  return { id, turnIndex, event: 'turnEnd' as const, state: copyOf(state) };
}

async function baseOf(world: World, held: Claim, cached: boolean): Promise<StateBase | undefined> {
  const { kit, scope, cache } = world;
  if (held.parent === undefined) return undefined;
  const known = cache.get(held.sessionId);
  if (cached && known?.snapshotId === held.parent.snapshotId) return known;
  return kit.runs.load(scope, { snapshotId: held.parent.snapshotId });
}

function change(world: World, state: SessionState, kind: Change, size: number): SessionState {
  const n = world.count++;
  const old = state.history.toArray();
  const withMessages = (messages: typeof old) => ({
    ...state,
    history: state.history.replace(messages),
  });
  switch (kind) {
    case 'append':
      return exchange(state, `text ${n % 7}`);
    case 'custom':
      return {
        ...state,
        custom: stateOf({ custom: { n: n % 3, list: Array(size).fill(n) } }).custom,
      };
    case 'artifact': {
      const added = { name: `a${size % 3}`, parts: [{ text: `${n % 4}` }] };
      const others = state.artifacts.filter((each) => each.name !== added.name);
      return { ...state, artifacts: stateOf({ artifacts: [...others, added] }).artifacts };
    }
    case 'trim':
      return exchange(withMessages(old.slice(-size)), `text ${n % 7}`);
    case 'rewrite':
      return withMessages([
        ...old.slice(0, size),
        say('user', `edit ${n % 5}`),
        ...old.slice(size + 1),
        ...old.slice(0, 1),
      ]);
    case 'clear':
      return emptyState;
  }
}

async function takeDetached(
  world: World,
  step: Extract<Command, { kind: 'detached' }>,
): Promise<void> {
  const { kit, scope } = world;
  const session = sessionOf(world.model, `s${step.session}`);
  const held = await kit.claim(session.id, {}, scope);
  const base = await baseOf(world, held, false);
  const { index } = await kit.runs.detach(held, { mode: 'detached', inputs: [] });
  expect(index).toBe(session.nextIndex++);
  const before = base?.state ?? emptyState;
  const half = step.checkpoint ? change(world, before, 'append', 1) : before;
  if (step.checkpoint) {
    const write = { ...(base && { base }), state: half, stateHash: hashState(half) };
    await kit.runs.checkpoint(held, { ...write, inputsDone: 0, midTurn: true });
  }
  const state = step.outcome === 'aborted' ? half : change(world, half, 'append', 1);
  if (step.outcome === 'aborted') await kit.abort.abortSnapshot(scope, held.runId);
  else await kit.commit(held, { ...(base && { base }), state, status: step.outcome }, scope);
  addRow(session, {
    ...describeRow(held.runId, held, state),
    ...(step.outcome === 'aborted' && { event: 'detach' as const }),
    status: step.outcome,
    interrupted: false,
    index,
    base: base?.snapshotId,
  });
}

/** A process dies during a turn, and the next turn starts. */
async function die(world: World, sessionId: string): Promise<void> {
  const { kit, scope } = world;
  // Waiting for a real clock would take most of the test's time; recovery has its own tests.
  if (kit.opened.advance === undefined) return;
  const session = sessionOf(world.model, sessionId);
  const held = await kit.claim(sessionId, { ttl: kit.ttl }, scope);
  await kit.expire();
  await kit.runs.release(await kit.claim(sessionId, {}, scope));
  const state = headOf(session)?.state ?? copyOf(emptyState);
  addRow(session, {
    ...describeRow(held.runId, held, emptyState),
    state,
    status: 'expired',
    interrupted: false,
    base: session.head,
  });
}

async function restore(world: World, { session, row }: Picked): Promise<void> {
  moveHead(session, row.id);
  expectRow(session, await world.kit.timeline.restore(world.scope, row.id));
}

async function fork(world: World, { row }: Picked): Promise<void> {
  const { kit, scope, model } = world;
  const target = { sessionId: `fork ${world.count++}`, snapshotId: kit.id() };
  const forked = await kit.timeline.fork(scope, row.id, target);
  const { parent: _, index: __, label: ___, unbroken: ____, ...same } = row;
  const session = sessionOf(model, target.sessionId);
  addRow(session, { ...same, id: target.snapshotId, base: undefined });
  expectRow(session, forked);
}

async function label(
  { kit, scope }: World,
  { session, row }: Picked,
  text: string | null,
): Promise<void> {
  if (text === null) delete row.label;
  else row.label = text;
  if (text !== null && row.index < 0) row.index = session.nextIndex++;
  expectRow(session, await kit.timeline.label(scope, row.id, text));
}

async function prune(
  { kit, scope, model }: World,
  { keepLast, keepLabelled }: Extract<Command, { kind: 'prune' }>,
): Promise<void> {
  const policy = { keepLast, keepLabelled };
  const report = await kit.maintenance.prune(policy, scope);
  let expected = 0;
  for (const session of model.values()) expected += pruneRows(session, policy);
  expect(report).toEqual({ snapshots: expected, sessions: 0 });
}

/** Deletes a session. */
export async function erase({ kit, scope, model, cache }: World, sessionId: string): Promise<void> {
  expect(await kit.timeline.deleteSession(scope, sessionId)).toBe(model.delete(sessionId));
  cache.delete(sessionId);
}

/** Exports and imports a session: everything except unfinished runs is unchanged. */
async function reimport(world: World, sessionId: string): Promise<void> {
  const { kit, scope, model } = world;
  const session = model.get(sessionId);
  const document = await kit.maintenance.exportSession(scope, sessionId);
  expect(document === undefined).toBe(session === undefined);
  if (session === undefined || document === undefined) return;
  await kit.timeline.deleteSession(scope, sessionId);
  await kit.maintenance.importSession(scope, JSON.parse(JSON.stringify(document)));
  world.cache.delete(sessionId);
  for (const row of session.rows.values()) {
    if (row.status === 'expired') session.rows.delete(row.id);
  }
  session.nextIndex = Math.max(-1, ...[...session.rows.values()].map((row) => row.index)) + 1;
}
