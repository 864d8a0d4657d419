import type { RunInfo, SnapshotStatus } from '../../../src/client/index.ts';
import { createSource, type Observable } from './observable.ts';
import { currentOwner } from './place.ts';
import { agentOf, server } from './server.ts';

/** A run that ended while the page was open. */
export interface EndedRun {
  readonly run: RunInfo;
  readonly status: SnapshotStatus | undefined;
  readonly endedAt: number;
}

/** The state of the server at this moment. */
export interface Pulse {
  /** Whether it answered the last time it was asked; unknown before the first answer. */
  readonly online: boolean | undefined;
  /** Counts the answers, so that others look again when the server does. */
  readonly beat: number;
  /** Counts how often it came back. */
  readonly returns: number;
  readonly runs: readonly RunInfo[];
  readonly ended: readonly EndedRun[];
}

const nothing: Pulse = { online: undefined, beat: 0, returns: 0, runs: [], ended: [] };

/** Milliseconds between two looks: while something runs, while nothing does, and while the server is away. */
const pace = { busy: 700, idle: 2_500, away: 1_000 };
const maxEnded = 20;

const source = createSource(nothing);
let timer: ReturnType<typeof setTimeout> | undefined;
let agents: readonly string[] = [];
let started = false;
/** Whose runs were found the last time. */
let owner: string | undefined;

/** The pulse of the server; it is felt while the page is visible. */
export const pulse: Observable<Pulse> = source;

/** Says whose runs to look for, and begins to look. */
export function followRuns(names: readonly string[]): void {
  agents = names;
  if (started) return;
  started = true;
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) lookNow();
  });
  lookNow();
}

/** Looks at once, because something has just happened. */
export function lookNow(): void {
  clearTimeout(timer);
  timer = setTimeout(look, 0);
}

async function look(): Promise<void> {
  clearTimeout(timer);
  const asked = currentOwner();
  try {
    const lists = await Promise.all(
      agents.length === 0
        ? [server.agents().then(() => ({ items: [] }))]
        : agents.map((name) => agentOf(name).listRuns()),
    );
    // Another owner was chosen meanwhile.
    if (asked !== currentOwner()) return lookNow();
    const runs = lists
      .flatMap(({ items }) => items)
      .sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1));
    const now = source.get();
    const before = asked === owner ? now : { ...now, runs: [], ended: [] };
    owner = asked;
    source.set({
      ...before,
      online: true,
      beat: before.beat + 1,
      returns: before.returns + (before.online === false ? 1 : 0),
      runs,
    });
    for (const run of before.runs) {
      const isOver = !runs.some(({ snapshotId }) => snapshotId === run.snapshotId);
      // Attached turns report their end to their caller.
      if (isOver && run.mode === 'detached') void noteEnd(run);
    }
  } catch {
    if (source.get().online !== false) source.set({ ...source.get(), online: false });
  }
  if (document.hidden) return;
  const { online, runs } = source.get();
  timer = setTimeout(look, online === false ? pace.away : runs.length > 0 ? pace.busy : pace.idle);
}

async function noteEnd(run: RunInfo): Promise<void> {
  const snapshot = await agentOf(run.agent)
    .getSnapshot({ snapshotId: run.snapshotId })
    .catch(() => undefined);
  const ended = { run, status: snapshot?.status, endedAt: Date.now() };
  const others = source.get().ended.filter((each) => each.run.snapshotId !== run.snapshotId);
  source.set({ ...source.get(), ended: [ended, ...others].slice(0, maxEnded) });
}
