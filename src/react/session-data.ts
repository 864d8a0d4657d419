import type { AgentApi } from '../api/agent-api.ts';
import type {
  AgentTypes,
  OutputOf,
  SessionOf,
  SnapshotOf,
  StateOf,
  WireTypes,
} from '../api/types.ts';
import { hasStatus } from '../core/error.ts';
import { type Json, jsonEqual } from '../core/json/json.ts';
import { applyKnownPatch, type JsonPatch } from '../core/json/patch.ts';
import type { Message } from '../protocol/message.ts';
import type { MessageOptions } from '../protocol/message-page.ts';
import type { Artifact } from '../protocol/state.ts';

/** The saved part of a conversation. */
export interface SessionData<Types extends AgentTypes = WireTypes> {
  readonly sessionId: string | undefined;
  /** The snapshot that the next turn continues from. */
  readonly snapshotId: string | undefined;
  readonly messages: readonly Message[];
  /** The position of the first of these messages: how many earlier ones were not loaded. */
  readonly from: number;
  readonly custom: Types['custom'] | undefined;
  readonly artifacts: readonly Artifact[];
  /** The whole state, of an agent whose state the client holds. */
  readonly state?: StateOf<Types>;
}

/** The saved part of a conversation at a snapshot, if there is one. Values equal to those of `before` stay the same objects. */
export function sessionDataOf<Types extends AgentTypes>(
  saved: Pick<SnapshotOf<Types>, 'state' | 'messageRange'> & {
    readonly sessionId: string | undefined;
    readonly snapshotId?: string | undefined;
  },
  before?: SessionData<Types>,
): SessionData<Types> {
  const { sessionId, snapshotId, state = {}, messageRange } = saved;
  const { messages = [], custom, artifacts = [] } = state;
  const { from = 0 } = messageRange ?? {};
  const place = { sessionId, snapshotId };
  if (!before) return { ...place, messages, from, custom, artifacts };
  return {
    ...place,
    ...joined(before, messages, from),
    custom: sameAs(before.custom, custom),
    artifacts: keepSame(before.artifacts, artifacts),
  };
}

/** The saved part of a conversation at the head of a session. */
export function sessionDataOfSession<Types extends AgentTypes>(
  { headId, ...session }: Pick<SessionOf<Types>, 'sessionId' | 'headId' | 'state' | 'messageRange'>,
  before?: SessionData<Types>,
): SessionData<Types> {
  return sessionDataOf({ ...session, snapshotId: headId }, before);
}

/** The saved part after a turn. Fetches only the difference if possible, because conversations can be long. */
export async function addTurn<Types extends AgentTypes>(
  agent: AgentApi<Types>,
  before: SessionData<Types>,
  output: OutputOf<Types>,
  page: MessageOptions,
): Promise<SessionData<Types>> {
  const { sessionId, snapshotId, state } = output;
  if (state) return { ...sessionDataOf(output, before), state };
  // The server compares whole states for a difference, which a page is there to avoid.
  const grown = page.messages ? undefined : await settleDifference(agent, before, output);
  if (grown) return grown;
  const snapshot = await agent.getSnapshot(
    snapshotId === undefined ? { sessionId } : { snapshotId },
    page,
  );
  return snapshot ? sessionDataOf(snapshot, before) : { ...before, sessionId, snapshotId };
}

async function settleDifference<Types extends AgentTypes>(
  agent: AgentApi<Types>,
  before: SessionData<Types>,
  { sessionId, snapshotId, artifacts = [] }: OutputOf<Types>,
): Promise<SessionData<Types> | undefined> {
  const from = before.snapshotId;
  if (from === undefined || snapshotId === undefined || sessionId !== before.sessionId)
    return undefined;
  if (from === snapshotId) return before;
  try {
    const { messages, custom } = await agent.diff(from, snapshotId, { workspace: false });
    // Messages that were taken away may have been anywhere.
    if (messages.removed.length > 0) return undefined;
    const patched = applyKnownPatch((before.custom ?? null) as Json, custom as JsonPatch);
    return {
      sessionId,
      snapshotId,
      messages: [...before.messages, ...marked(messages.added, snapshotId)],
      from: before.from,
      // The patch leads to what the agent's schema let through.
      custom: custom.length === 0 ? before.custom : (patched as Types['custom']),
      artifacts: keepSame(before.artifacts, artifacts),
    };
  } catch {
    return undefined; // a store without timeline, or a state that cannot be patched: all of it, then
  }
}

/** The last message of a turn says which snapshot it led to, as it does in a state that is read as a whole. */
function marked(messages: readonly Message[], snapshotId: string): readonly Message[] {
  const last = messages.at(-1);
  if (!last) return messages;
  return [...messages.slice(0, -1), { ...last, metadata: { ...last.metadata, snapshotId } }];
}

/** A page of messages behind the earlier ones that are known, if it continues them. */
function joined(
  before: Pick<SessionData, 'messages' | 'from'>,
  messages: readonly Message[],
  from: number,
): Pick<SessionData, 'messages' | 'from'> {
  const known = before.messages.slice(Math.max(0, from - before.from));
  const isContinued =
    from > before.from &&
    known[0] !== undefined &&
    jsonEqual(known[0] as unknown as Json, messages[0] as unknown as Json);
  if (!isContinued) {
    return {
      messages: from === before.from ? keepSame(before.messages, messages) : messages,
      from,
    };
  }
  const all = [...before.messages.slice(0, from - before.from), ...keepSame(known, messages)];
  return { messages: keepSame(before.messages, all), from: before.from };
}

/** The old value where the new one says the same. */
export function sameAs<T>(before: T | undefined, now: T): T {
  return before !== undefined && jsonEqual(before as Json, now as Json) ? before : now;
}

/** The new list with the old objects wherever they say the same, so that what shows them need not be drawn again. */
function keepSame<T>(before: readonly T[], now: readonly T[]): readonly T[] {
  const kept = now.map((item, at) => sameAs(before[at], item));
  return kept.length === before.length && kept.every((item, at) => item === before[at])
    ? before
    : kept;
}

/** The snapshot a message's turn started from: that of the turn before. `undefined` for the first turn. */
export function snapshotBefore(messages: readonly Message[], index: number): string | undefined {
  for (let at = index - 1; at >= 0; at--) {
    const snapshotId = messages[at]?.metadata?.snapshotId;
    if (typeof snapshotId === 'string') return snapshotId;
  }
  return undefined;
}

export type ReadSession<Types extends AgentTypes> = Pick<
  SessionOf<Types>,
  'sessionId' | 'headId' | 'title' | 'running' | 'state' | 'messageRange'
>;

/** A session with its latest state; from its head snapshot where the agent's store keeps no sessions. */
export async function readSession<Types extends AgentTypes>(
  agent: AgentApi<Types>,
  sessionId: string,
  options: MessageOptions & { readonly signal: AbortSignal },
): Promise<ReadSession<Types> | undefined> {
  try {
    return await agent.getSession(sessionId, options);
  } catch (error) {
    if (!hasStatus(error, 'FAILED_PRECONDITION')) throw error;
  }
  const head = await agent.getSnapshot({ sessionId }, options);
  if (!head) return undefined;
  return { ...head, headId: head.snapshotId };
}

/** The messages that were sent to an open run, as far as they can be read: the first ones that it has added. */
export async function readSent<Types extends AgentTypes>(
  agent: AgentApi<Types>,
  runId: string,
  { from, messages }: SessionData<Types>,
  options: MessageOptions & { readonly signal: AbortSignal },
): Promise<readonly Message[]> {
  const run = await agent.getSnapshot({ snapshotId: runId }, options).catch(() => undefined);
  const end = from + messages.length - (run?.messageRange?.from ?? 0);
  const added = run?.state?.messages?.slice(Math.max(0, end)) ?? [];
  const answer = added.findIndex(({ role }) => role !== 'user');
  return answer === -1 ? added : added.slice(0, answer);
}
