import type { Agent } from '../../agent/contract/agent.ts';
import { internalsOf } from '../../agent/define/create-agent.ts';
import { defined, type Json } from '../../core/json/json.ts';
import { isName } from '../../protocol/ids.ts';
import type { Message } from '../../protocol/message.ts';
import type { SessionInfo } from '../../protocol/session.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { State } from '../../protocol/state.ts';
import { fromPlainState, hashState } from '../../session/session-state.ts';
import type { Scope, SnapshotStore } from '../../store/contract/store.ts';
import { short } from '../http/answer.ts';
import { type Caller, ownerOf } from '../http/auth.ts';
import { hasStore } from '../http/served-app.ts';
import type { OpenCall } from '../http/server-context.ts';
import { badRequest, unknownId } from './errors.ts';
import { type FullStore, fullStoreOf, type OpenAiServer } from './openai-server.ts';

/**
 * A conversation: a session of the agent that answered first. Until then, and for its metadata, there is a record of it, because
 * clients create conversations before they say which model is to answer.
 */
export interface Conversation {
  readonly id: string;
  readonly record?: SessionInfo | undefined;
  /** The agent that has answered, and its session. */
  readonly agent?: Agent | undefined;
  readonly session?: SessionInfo | undefined;
}

/** The name under which records are kept; no agent can have it. */
const recordsName = 'openai:conversations';

/** Where the records of conversations are: in the store of the first agent that can list sessions. */
export interface Records {
  readonly store: FullStore;
  readonly scope: Scope;
}

export function recordsOf(openai: OpenAiServer, caller: Caller): Records {
  for (const agent of openai.agents()) {
    const store = fullStoreOf(agent);
    if (store) return { store, scope: { agent: recordsName, ...ownerOf(caller) } };
  }
  throw badRequest(
    'This server keeps no conversations: none of its models has a store that lists sessions.',
    { code: 'unsupported_operation' },
  );
}

/** Finds a conversation of this caller; that of another owner is unknown. */
export async function findConversation(
  openai: OpenAiServer,
  caller: Caller,
  id: string,
): Promise<Conversation> {
  if (!isName(id)) throw unknownConversation(id);
  const { store, scope } = recordsOf(openai, caller);
  const record = await store.timeline.getSession(scope, id);
  for (const agent of openai.agents().filter(hasStore)) {
    const session = await fullStoreOf(agent)?.timeline.getSession(
      { agent: agent.name, ...ownerOf(caller) },
      id,
    );
    if (session) return { id, record, agent, session };
  }
  if (record) return { id, record };
  throw unknownConversation(id);
}

/** Gives a conversation that no agent has answered in its first messages, as a session of this agent. */
export async function prepareSession(
  conversation: Conversation,
  open: OpenCall,
  openai: OpenAiServer,
): Promise<void> {
  const { id } = conversation;
  const messages = await firstMessages(conversation, open, openai);
  if (messages.length > 0) await seedSession(open, { messages, sessionId: id });
}

/** The messages of a conversation that no agent has answered. Refuses one that another agent has answered. */
export async function firstMessages(
  { id, agent, session }: Conversation,
  open: OpenCall,
  openai: OpenAiServer,
): Promise<readonly Message[]> {
  if (agent && agent.name !== open.agent.name) {
    throw badRequest(
      `The conversation ${short(id)} belongs to the model ${short(agent.name)}. Continue it there, or create another one.`,
      { param: 'conversation', code: 'conversation_of_another_model' },
    );
  }
  if (session) return [];
  const { store, scope } = recordsOf(openai, open.caller);
  return (await store.getSnapshot(scope, { sessionId: id }))?.state?.messages ?? [];
}

export function unknownConversation(id: string): Error {
  return unknownId(`There is no conversation ${short(id)} here.`, 'conversation_not_found');
}

/** The content of a snapshot that no turn has made. */
interface Seed {
  readonly messages: readonly Message[];
  /** The session to continue. @default a new one */
  readonly sessionId?: string | undefined;
  /** The head of that session, and its state. */
  readonly parent?: Snapshot | undefined;
}

/** Adds messages of the caller to a session of the agent as a snapshot; gives its id. */
export async function seedSession({ agent, caller }: OpenCall, seed: Seed): Promise<string> {
  const { spec, host } = internalsOf(agent);
  if (spec.store === undefined) {
    const message = `The model "${agent.name}" stores nothing. Send store: false.`;
    throw badRequest(message, { param: 'store' });
  }
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
  const asked = (state.messages ?? []).filter(({ role }) => role === 'user');
  const now = new Date(0).toISOString();
  await store.saveSnapshot(scope, snapshotId, () => ({
    snapshotId,
    sessionId: sessionId ?? newId(),
    ...defined({ parentId: parent?.snapshotId }),
    index: parent ? parent.index + 1 : 0,
    turnIndex: Math.max(0, asked.length - 1),
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
