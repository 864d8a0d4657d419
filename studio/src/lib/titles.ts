import type { Message, RemoteAgent } from '../../../src/client/index.ts';
import { createSource, type Observable } from './observable.ts';
import { titleOf, titlesOf, toTurns } from './turns.ts';

/** The titles of a session's turns, by snapshot. */
export interface Titles extends Observable<ReadonlyMap<string, string>> {
  /** Reads the titles off a conversation that is at hand. */
  learn(messages: readonly Message[]): void;
  /** Asks the server for those that are not known, a few at a time; the last wish counts. */
  want(
    snapshots: readonly { readonly snapshotId: string; readonly parentId?: string | undefined }[],
  ): void;
}

/** Snapshots are listed without their messages; what is on the screen is looked up when it comes into view. */
export function createTitles(agent: RemoteAgent): Titles {
  const source = createSource<ReadonlyMap<string, string>>(new Map());
  const asked = new Set<string>();
  let wanted: Parameters<Titles['want']>[0] = [];
  let busy = false;

  const work = async (): Promise<void> => {
    if (busy) return;
    busy = true;
    for (let next = take(); next; next = take()) {
      const { snapshotId, parentId } = next;
      const title = await titleFrom(agent, snapshotId, parentId).catch(() => undefined);
      if (title !== undefined) source.set(new Map(source.get()).set(snapshotId, title));
    }
    busy = false;
  };
  const take = () => {
    const next = wanted.find(
      ({ snapshotId }) => !asked.has(snapshotId) && !source.get().has(snapshotId),
    );
    if (next) asked.add(next.snapshotId);
    return next;
  };
  return {
    ...source,
    learn(messages) {
      const known = source.get();
      const found = [...titlesOf(messages)].filter(([id, title]) => known.get(id) !== title);
      if (found.length > 0) source.set(new Map([...known, ...found]));
    },
    want(snapshots) {
      wanted = snapshots;
      void work();
    },
  };
}

async function titleFrom(
  agent: RemoteAgent,
  snapshotId: string,
  parentId: string | undefined,
): Promise<string | undefined> {
  // The end of a state is enough for most turns, and much less than a comparison of two states.
  const snapshot = await agent.getSnapshot({ snapshotId }, { messages: { last: maxPerTurn } });
  const { state, messageRange } = snapshot ?? {};
  const turns = toTurns(state?.messages ?? []);
  const isWhole = turns.length > 1 || (messageRange?.from ?? 0) === 0;
  if (parentId !== undefined && !isWhole) {
    const { messages } = await agent.diff(parentId, snapshotId);
    return titleOf(messages.added);
  }
  return titleOf(turns.at(-1)?.messages.map(({ message }) => message) ?? []);
}

// A turn with more messages than this is rare.
const maxPerTurn = 20;
