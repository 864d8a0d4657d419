import type { Agent, CallOptions } from '../../agent/contract/agent.ts';
import { internalsOf } from '../../agent/define/create-agent.ts';
import { sha256 } from '../../core/json/hash.ts';
import { defined } from '../../core/json/json.ts';
import { isName } from '../../protocol/ids.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { State } from '../../protocol/state.ts';
import type { Init } from '../../protocol/turn.ts';
import { type Step, textIn } from './chat-messages.ts';
import type { ChatRequest } from './chat-shapes.ts';
import { badRequest } from './errors.ts';
import { type Item, inputItems, outputItems, textOfItem, turnsIn } from './items.ts';

/** The session that a request names. */
export interface NamedSession {
  readonly sessionId: string;
  /** Whether requests have the whole conversation; else those without messages of the assistant have only what is new. */
  readonly isWhole: boolean;
}

/**
 * `metadata.session_id` is the session. `user` is a person with many conversations: those that begin with the same message are one
 * session of that person.
 */
export function sessionOf(
  { metadata, user, store }: ChatRequest,
  steps: readonly Step[],
): NamedSession | undefined {
  const sessionId = metadata?.session_id;
  if (sessionId !== undefined) {
    if (!isName(sessionId) || store === false) {
      throw badRequest(
        store === false
          ? 'With store: false, nothing is stored, so metadata.session_id names no session. Leave one of them out.'
          : 'metadata.session_id must have 1 to 256 characters.',
        { param: 'metadata.session_id' },
      );
    }
    return { sessionId, isWhole: false };
  }
  if (!user || store === false) return undefined;
  const first = steps.find(({ role }) => role === 'user');
  const begins = first ? keyOf(first) : '';
  return { sessionId: `chat-${sha256(JSON.stringify([user, begins]))}`, isWhole: true };
}

/** Where a conversation continues, and what of it is new. */
export interface ChatPlace {
  readonly init: Init;
  readonly rest: readonly Step[];
}

/** Compares a conversation with the stored ones of its session, and branches where it leaves them. */
export async function findPlace(
  agent: Agent,
  { sessionId, isWhole }: NamedSession,
  given: readonly Step[],
  options: CallOptions,
): Promise<ChatPlace> {
  const session = await agent.getSession(sessionId, options);
  const atHead = { init: { sessionId }, rest: given };
  if (session?.headId === undefined) return atHead;
  if (!isWhole && !hasAssistant(given)) return atHead;
  // An empty answer has no items.
  const steps = given.filter(
    ({ role, content, calls }) => role !== 'assistant' || content.length + calls.length > 0,
  );
  const { headId, state } = session;
  const common = async (snapshotId: string, shown: unknown): Promise<CommonTurns> =>
    commonTurns(steps, await turnsFor(agent, { snapshotId, shown: shown as State }, options));
  let best = await common(headId, state);
  if (hasAssistant(steps.slice(best.count))) {
    for await (const leaf of otherLeaves(agent, { sessionId, headId }, options)) {
      const found = await common(leaf.snapshotId, leaf.state);
      if (found.count > best.count) best = found;
    }
  }
  const { count, snapshotId } = best;
  const rest = steps.slice(count);
  if (snapshotId === undefined) return { init: { sessionId, from: null }, rest };
  return { init: snapshotId === headId ? { sessionId } : { sessionId, snapshotId }, rest };
}

export function hasAssistant(steps: readonly Step[]): boolean {
  return steps.some(({ role }) => role === 'assistant');
}

/** How many branches besides the active one are searched: the newest ones. */
const maxLeaves = 10;

/** The ends of the other branches, newest first. */
async function* otherLeaves(
  agent: Agent,
  { sessionId, headId }: { readonly sessionId: string; readonly headId: string },
  options: CallOptions,
): AsyncGenerator<Pick<Snapshot, 'snapshotId' | 'state'>> {
  const { items } = await agent.listSnapshots(sessionId, {
    ...options,
    includeOrphaned: true,
    limit: 50,
  });
  const parents = new Set(items.map(({ parentId }) => parentId));
  const leaves = items.filter(
    ({ snapshotId, status }) =>
      status === 'succeeded' && snapshotId !== headId && !parents.has(snapshotId),
  );
  for (const { snapshotId } of leaves.slice(0, maxLeaves)) {
    const snapshot = await agent.getSnapshot({ snapshotId }, options);
    if (snapshot) yield snapshot as Pick<Snapshot, 'snapshotId' | 'state'>;
  }
}

/** The items of each turn, as its client knows them: what it has sent, and of the answer what a transform of the state shows. */
async function turnsFor(
  agent: Agent,
  { snapshotId, shown }: { readonly snapshotId: string; readonly shown: State | undefined },
  { owner }: CallOptions,
): Promise<readonly StoredTurn[]> {
  const { store, transform } = internalsOf(agent).spec;
  const scope = { agent: agent.name, ...defined({ owner }) };
  const stored = transform.state ? await store?.getSnapshot(scope, { snapshotId }) : undefined;
  const sent = turnsIn((stored?.state ?? shown)?.messages ?? [], snapshotId);
  const answers = new Map(
    turnsIn(shown?.messages ?? [], snapshotId).map((turn) => [turn.snapshotId, turn]),
  );
  return sent.map((turn, at) => {
    const answer = answers.get(turn.snapshotId);
    const items = [...inputItems(turn, sent[at - 1]), ...(answer ? outputItems(answer) : [])];
    return { snapshotId: turn.snapshotId, keys: toKeys(items) };
  });
}

interface StoredTurn {
  readonly snapshotId: string;
  /** The keys that each of its steps can have. */
  readonly keys: readonly (readonly string[])[];
}

interface CommonTurns {
  readonly count: number;
  readonly snapshotId?: string;
}

/** How many steps a conversation has in common with a stored one, in whole turns, and the snapshot after them. */
function commonTurns(steps: readonly Step[], turns: readonly StoredTurn[]): CommonTurns {
  let common: CommonTurns = { count: 0 };
  let at = 0;
  for (const { snapshotId, keys: own } of turns) {
    for (const keys of own) {
      const step = steps[at];
      if (step === undefined || !keys.includes(keyOf(step))) return common;
      at++;
    }
    // A turn that has no answer is asked for again.
    if (at === steps.length && steps.at(-1)?.role !== 'assistant') return common;
    common = { count: at, snapshotId };
  }
  return common;
}

/** The parts of a step that say whether a stored one is the same. Clients trim texts, and stored media may have other URLs. */
function keyOf({ role, content, calls }: Step): string {
  const media = content.filter((part) => 'media' in part).length;
  // Outputs of calls may come in any order.
  return toKey(role, [textIn(content).trim(), media, calls.map(({ id }) => id).toSorted()]);
}

function toKey(role: string, what: readonly unknown[]): string {
  return JSON.stringify([role, ...what]);
}

/** The items of a turn as the steps that clients know them as, each with all the keys that it can have. */
function toKeys(items: readonly Item[]): readonly (readonly string[])[] {
  const groups: { role: Step['role']; items: Item[] }[] = [];
  for (const item of items) {
    const role = roleOf(item);
    if (role === undefined) continue;
    const last = groups.at(-1);
    if (last?.role === role) last.items.push(item);
    else groups.push({ role, items: [item] });
  }
  return groups.map(({ role, items: own }) => {
    const ids = own.flatMap(({ call_id: id }) => (typeof id === 'string' ? [id] : [])).toSorted();
    if (role === 'tool') return [toKey(role, ['', 0, ids])];
    const texts = own.filter(({ type }) => type === 'message').map(textOfItem);
    if (role === 'assistant') {
      // JSON is the last text alone.
      const said = [texts.join(textSeparator), texts.at(-1) ?? ''];
      return said.map((text) => toKey(role, [text.trim(), 0, ids]));
    }
    const parts = own.flatMap(({ content }) => content as readonly { readonly type: string }[]);
    const media = parts.filter(({ type }) => type !== 'input_text').length;
    return [toKey(role, [texts.join('').trim(), media, ids])];
  });
}

/** Between the texts of an answer that the agent's tools have interrupted: clients get them as one. */
export const textSeparator = '\n\n';

function roleOf({ type, role }: Item): Step['role'] | undefined {
  if (type === 'function_call') return 'assistant';
  if (type === 'function_call_output') return 'tool';
  return role === 'user' || role === 'assistant' ? role : undefined;
}
