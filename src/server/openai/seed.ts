import { internalsOf } from '../../agent/define/create-agent.ts';
import type { Json } from '../../core/json/json.ts';
import type { Message } from '../../protocol/message.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { State } from '../../protocol/state.ts';
import { fromPlainState, hashState } from '../../session/session-state.ts';
import type { Scope, SnapshotStore } from '../../store/contract/store.ts';
import { ownerOf } from '../http/auth.ts';
import type { OpenCall } from '../http/server-context.ts';
import { badRequest } from './errors.ts';

/** What a snapshot that no turn has made is to have. */
export interface Seed {
  readonly messages: readonly Message[];
  /** The session to continue. @default a new one */
  readonly sessionId?: string | undefined;
  /** The head of that session, and its state. */
  readonly parent?: Snapshot | undefined;
}

/** Adds messages of the caller to a session of the agent as a snapshot; gives its id. */
export async function seedSession({ agent, caller }: OpenCall, seed: Seed): Promise<string> {
  const { spec, host } = internalsOf(agent);
  if (spec.store === undefined) throw noStore(agent.name);
  const scope = { agent: spec.name, ...ownerOf(caller) };
  const initial = spec.initialState;
  return await saveMessages(spec.store, scope, seed, { newId: host.newId, initial });
}

/** Writes messages as a snapshot, which becomes the head of its session. */
export async function saveMessages(
  store: SnapshotStore,
  scope: Scope,
  { messages, parent, sessionId = parent?.sessionId }: Seed,
  { newId, initial }: { readonly newId: () => string; readonly initial?: Json | undefined },
): Promise<string> {
  const snapshotId = newId();
  const before = parent?.state ?? (initial === undefined ? {} : { custom: initial });
  const state: State = { ...before, messages: [...(before.messages ?? []), ...messages] };
  const now = new Date(0).toISOString();
  await store.saveSnapshot(scope, snapshotId, () => ({
    snapshotId,
    sessionId: sessionId ?? newId(),
    ...(parent && { parentId: parent.snapshotId }),
    index: parent ? parent.index + 1 : 0,
    turnIndex: Math.max(0, countTurns(state.messages ?? []) - 1),
    event: 'turnEnd',
    status: 'succeeded',
    finishReason: 'stop',
    // The store sets the times.
    createdAt: now,
    updatedAt: now,
    stateHash: hashState(fromPlainState(state)),
    orphaned: false,
    state,
  }));
  return snapshotId;
}

function countTurns(messages: readonly Message[]): number {
  return messages.filter(({ role }) => role === 'user').length;
}

function noStore(name: string): Error {
  return badRequest(`The model "${name}" stores nothing. Send store: false.`, { param: 'store' });
}
