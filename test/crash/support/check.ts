import { expect } from 'vitest';
import type { Message } from '../../../src/protocol/message.ts';
import { textOf } from '../../../src/protocol/messages.ts';
import type { Store } from '../../../src/store/contract/store.ts';
import type { Written } from './journal.ts';

type Promised = Written & { readonly kind: 'promised' };

/**
 * Compares an idle store with what its processes have promised and done. `since` skips promises in earlier lines, which is
 * cheaper.
 */
export async function checkPromises(
  store: Store,
  lines: readonly Written[],
  since = 0,
): Promise<void> {
  const promised = lines.slice(since).filter((line): line is Promised => line.kind === 'promised');
  const histories = await checkSessions(store, promised);
  await checkEnds(store, lines, promised, histories);
  checkEffects(lines);
  const open = (await store.runs?.listRuns()) ?? [];
  expect(open.filter(({ mode, expired }) => mode !== 'attached' || !expired)).toEqual([]);
  expect(await store.maintenance?.verify()).toEqual([]);
}

/** Every session holds only complete turns, each once, and no pending snapshot. */
async function checkSessions(
  store: Store,
  promised: readonly Promised[],
): Promise<Map<string, readonly string[]>> {
  const histories = new Map<string, readonly string[]>();
  const names = new Map(promised.map(({ agent, sessionId }) => [sessionId, agent]));
  for (const [sessionId, agent] of names) {
    const head = await store.getSnapshot({ agent }, { sessionId });
    const said = checkHistory(head?.state?.messages ?? []);
    expect(said, `texts of ${sessionId}`).toEqual([...new Set(said)]);
    histories.set(sessionId, said);
    let cursor: string | undefined;
    do {
      const page = await store.timeline?.listSnapshots({ agent }, sessionId, {
        limit: 500,
        includeOrphaned: true,
        ...(cursor !== undefined && { cursor }),
      });
      const pending = page?.items.filter(({ status }) => status === 'pending');
      expect(pending, `pending snapshots of ${sessionId}`).toEqual([]);
      cursor = page?.next;
    } while (cursor !== undefined);
  }
  return histories;
}

/** What users said; each has its answer behind it, with a result for every tool request. */
function checkHistory(messages: readonly Message[]): string[] {
  const said: string[] = [];
  let before: Message | undefined;
  for (const message of messages) {
    const expected = before === undefined || isAnswer(before) ? ['user'] : next[before.role];
    expect(expected, `what follows ${JSON.stringify(before)}`).toContain(message.role);
    if (message.role === 'user') said.push(textOf(message));
    before = message;
  }
  expect(before === undefined || isAnswer(before), JSON.stringify(before)).toBe(true);
  return said;
}

const next: Readonly<Record<Message['role'], readonly string[]>> = {
  system: [],
  user: ['model'],
  model: ['tool'],
  tool: ['model'],
};

function isAnswer({ role, content }: Message): boolean {
  return role === 'model' && !content.some((part) => 'toolRequest' in part);
}

/** Every promised run has ended, and every answer to a caller was true. */
async function checkEnds(
  store: Store,
  lines: readonly Written[],
  promised: readonly Promised[],
  histories: ReadonlyMap<string, readonly string[]>,
): Promise<void> {
  const answered = new Map(
    lines.flatMap((line) => (line.kind === 'answered' ? [[line.snapshotId, line] as const] : [])),
  );
  for (const { agent, snapshotId, mode, texts, sessionId } of promised) {
    const about = `${mode} ${snapshotId} (${texts.join(', ')})`;
    const told = answered.get(snapshotId);
    const snapshot = await store.getSnapshot({ agent }, { snapshotId });
    expect(snapshot?.error, about).toBeUndefined();
    const said = histories.get(sessionId) ?? [];
    if (mode !== 'attached' || told?.status === 'succeeded') {
      expect(snapshot?.status, about).toBe('succeeded');
    } else expect([undefined, 'succeeded', 'failed', 'expired'], about).toContain(snapshot?.status);
    const times = texts.map((text) => said.filter((each) => each === text).length);
    const wanted = snapshot?.status === 'succeeded' ? 1 : 0;
    expect(times, about).toEqual(texts.map(() => wanted));
  }
}

/** Recorded effects are not repeated, and every attempt at an effect has the same key. */
export function checkEffects(lines: readonly Written[]): void {
  const recorded = new Set<string>();
  const keys = new Map<string, string>();
  for (const line of lines) {
    if (line.kind === 'recorded') recorded.add(line.key);
    if (line.kind !== 'effect') continue;
    expect(recorded.has(line.key), `${line.what} was done again`).toBe(false);
    expect(keys.get(line.what) ?? line.key, `the key of ${line.what}`).toBe(line.key);
    keys.set(line.what, line.key);
  }
}
