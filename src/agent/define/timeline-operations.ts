import type { AgentOperations } from '../../api/calls.ts';
import { invalid, WaymarkError } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import { reportDeletedSession } from '../../core/trace.ts';
import { checkId, checkLookup, scopeOf } from '../../protocol/ids.ts';
import { checkMessagePage, withPage } from '../../protocol/message-page.ts';
import type { Page, SessionInfo } from '../../protocol/session.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import { diffStates } from '../../session/diff.ts';
import { fromPlainState } from '../../session/session-state.ts';
import type {
  ExpectHead,
  ListOptions,
  Scope,
  SessionFilter,
  TimelineSupport,
} from '../../store/contract/store.ts';
import { checkLimit } from '../../store/rules/page.ts';
import { checkQuery, matchesQuery } from '../../store/rules/session-filter.ts';
import type { CallOptions, InvokeOptions } from '../contract/agent.ts';
import type { AgentSpec } from '../contract/spec.ts';
import type { AgentHost } from '../persistence/host.ts';
import { onSnapshot, unknownSnapshot } from '../persistence/store-errors.ts';
import { showsSessions, transformSession, transformSnapshot } from '../persistence/transform.ts';
import { newMemoryPlace } from '../turn/memory.ts';
import { editSnapshot, savePartial } from './edit-snapshot.ts';
import { memoryOperations } from './memory-operations.ts';
import { type RunOperations, supportOf } from './run-operations.ts';
import { listWaiting } from './waiting.ts';

type TimelineOperations = Omit<
  AgentOperations<CallOptions, InvokeOptions>,
  keyof RunOperations | 'optionNames' | 'toJsonSchema' | 'begin' | 'streamBidi'
>;

/** The calls of an agent that read and change its sessions and their snapshots. */
export function timelineOperations(spec: AgentSpec, host: AgentHost): TimelineOperations {
  const use = (owner: string | undefined): [TimelineSupport, Scope] => [
    supportOf(spec, 'timeline'),
    scopeOf(spec, owner),
  ];
  const leaving = (snapshot: Snapshot): Snapshot => transformSnapshot(spec.transform, snapshot);
  const shown = (session: SessionInfo): SessionInfo => transformSession(spec.transform, session);
  const readSaved = async (scope: Scope, snapshotId: string): Promise<Snapshot> => {
    const saved = await spec.store?.getSnapshot(scope, { snapshotId });
    if (saved === undefined) throw deletedMeanwhile(snapshotId);
    return leaving(saved);
  };
  return {
    async listSnapshots(sessionId, { owner, ...options } = {}) {
      checkId(sessionId, 'a session id');
      const [sessions, scope] = use(owner);
      const page = await sessions.listSnapshots(scope, sessionId, withoutSignal(options));
      return { ...page, items: page.items.map(leaving) };
    },
    async getSession(sessionId, { owner, messages } = {}) {
      checkId(sessionId, 'a session id');
      checkMessagePage(messages);
      const [sessions, scope] = use(owner);
      const options = { state: true, ...(messages && { messages }) };
      const session = await sessions.getSession(scope, sessionId, options);
      return session && shown(withPage(session, messages));
    },
    async listSessions({ owner, ...options } = {}) {
      const [sessions, scope] = use(owner);
      const wanted = withoutSignal(options);
      if (showsSessions(spec.transform)) return await sessions.listSessions(scope, wanted);
      return await listShown(sessions, scope, wanted, shown);
    },
    async listInterrupts({ owner, ...options } = {}) {
      const [sessions, scope] = use(owner);
      return await listWaiting(spec, sessions, scope, withoutSignal(options));
    },
    async updateSession(sessionId, change, { owner } = {}) {
      checkId(sessionId, 'a session id');
      const [sessions, scope] = use(owner);
      return shown(await sessions.updateSession(scope, sessionId, change));
    },
    async deleteSession(sessionId, { owner } = {}) {
      checkId(sessionId, 'a session id');
      const [sessions, scope] = use(owner);
      host.cache.delete(scope, sessionId);
      const isDeleted = await sessions.deleteSession(scope, sessionId);
      if (isDeleted) reportDeletedSession(sessionId);
      return isDeleted;
    },
    async restore(snapshotId, { owner, ifHead, context = {}, ...how } = {}) {
      checkId(snapshotId, 'a snapshot id');
      const [sessions, scope] = use(owner);
      const { partial, workspace = true, undo, force } = how;
      const { expectHead } = expecting(ifHead);
      if (undo !== undefined) {
        const planId = undo === true ? undefined : undo;
        const request = {
          to: snapshotId,
          ...defined({ planId, force: force === true || undefined }),
          ...(!workspace && { workspace }),
        };
        const options = defined({ caller: context, expectHead });
        const { restoreWithUndo } = await import('./undo-run.ts');
        return leaving(await restoreWithUndo({ spec, host, scope }, request, options));
      }
      const move = async (head: string | undefined): Promise<Snapshot> => {
        if (partial !== true) {
          const restored = sessions.restore(scope, snapshotId, defined({ expectHead: head }));
          return leaving(await onSnapshot(spec, scope, snapshotId, restored));
        }
        const whole = defined({ note: defined({ by: owner }), expectHead: head });
        const saved = savePartial({ spec, host, scope }, snapshotId, whole);
        return await readSaved(scope, await onSnapshot(spec, scope, snapshotId, saved));
      };
      if (spec.workspace === undefined || !workspace) return await move(expectHead);
      const { restoreFiles } = await import('./restore-files.ts');
      return await restoreFiles({ spec, host, scope, context, expectHead }, snapshotId, move);
    },
    memory: memoryOperations(spec),
    async planUndo(snapshotId, { owner } = {}) {
      checkId(snapshotId, 'a snapshot id');
      const [, scope] = use(owner);
      const { effectsOf, readPlan, toUndoPlan } = await import('./read-undo-plan.ts');
      effectsOf(spec);
      return toUndoPlan({ spec, host, scope }, await readPlan({ spec, host, scope }, snapshotId));
    },
    async fork(snapshotId, { owner, ifHead, sessionId = host.newId() } = {}) {
      checkId(snapshotId, 'a snapshot id');
      checkId(sessionId, 'a session id');
      const [sessions, scope] = use(owner);
      const place = spec.memory && { memory: newMemoryPlace(host) };
      const target = { sessionId, snapshotId: host.newId(), ...place, ...expecting(ifHead) };
      const forking = sessions.fork(scope, snapshotId, target);
      const forked = await onSnapshot(spec, scope, snapshotId, forking);
      await nameFork(sessions, scope, sessionId, host);
      return leaving(forked);
    },
    async label(snapshotId, label, { owner, ifHead } = {}) {
      checkId(snapshotId, 'a snapshot id');
      const [sessions, scope] = use(owner);
      const labelled = sessions.label(scope, snapshotId, label, expecting(ifHead));
      return leaving(await onSnapshot(spec, scope, snapshotId, labelled));
    },
    async edit(snapshotId, change, { owner, ifHead, by, reason } = {}) {
      checkId(snapshotId, 'a snapshot id');
      const [, scope] = use(owner);
      const edited = editSnapshot({ spec, host, scope }, snapshotId, {
        change,
        note: defined({ by, reason }),
        ...expecting(ifHead),
      });
      return await readSaved(scope, await onSnapshot(spec, scope, snapshotId, edited));
    },
    async diff(from, to, { owner, workspace = true, context = {} } = {}) {
      checkId(from, 'a snapshot id');
      checkId(to, 'a snapshot id');
      const [, scope] = use(owner);
      const [a, b] = await Promise.all([from, to].map((id) => stateOf(spec, scope, id)));
      const diff = diffStates(
        { snapshotId: from, state: fromPlainState(a ?? {}) },
        { snapshotId: to, state: fromPlainState(b ?? {}) },
      );
      if (workspace !== 'now' && typeof workspace !== 'boolean') {
        throw invalid("`workspace` of diff() must be true, false or 'now'.");
      }
      if (spec.workspace === undefined || workspace === false) return diff;
      const { diffFiles } = await import('./read-files.ts');
      const now = workspace === 'now' ? { context } : undefined;
      return { ...diff, files: [...(await diffFiles(spec, scope, { from, to, now }))] };
    },
    async listFiles(given, { owner, ...options } = {}) {
      const lookup = checkLookup(given);
      const [, scope] = use(owner);
      const { listFiles } = await import('./read-files.ts');
      return await listFiles(spec, scope, lookup, withoutSignal(options));
    },
  };
}

function deletedMeanwhile(id: string): WaymarkError {
  return new WaymarkError('NOT_FOUND', `Snapshot "${id}" was saved and deleted right after.`);
}

function expecting(ifHead: string | undefined): ExpectHead {
  if (ifHead === undefined) return {};
  checkId(ifHead, 'the snapshot id of a head');
  return { expectHead: ifHead };
}

async function stateOf(
  spec: AgentSpec,
  scope: Scope,
  snapshotId: string,
): Promise<Snapshot['state']> {
  const snapshot = await spec.store?.getSnapshot(scope, { snapshotId });
  if (snapshot === undefined) {
    const otherwise = `No snapshot "${snapshotId.slice(0, 64)}" of agent "${spec.name}".`;
    throw await unknownSnapshot(spec, scope, snapshotId, otherwise);
  }
  return transformSnapshot(spec.transform, snapshot).state;
}

function withoutSignal<Options extends object>(
  options: Options & { signal?: AbortSignal },
): Omit<Options, 'signal'> {
  const { signal: _, ...rest } = options;
  return rest;
}

/** How many sessions a search reads at a time. */
const batchSize = 200;

/**
 * Lists sessions of an agent with a transform. A query is compared with what callers may see of a session: its id, title and
 * metadata. The store searches the original, so its hits would tell what the transform hides. Reads the sessions of the
 * owner up to the last hit of the page.
 */
async function listShown(
  sessions: TimelineSupport,
  scope: Scope,
  { query, ...options }: ListOptions & SessionFilter,
  shown: (session: SessionInfo) => SessionInfo,
): Promise<Page<SessionInfo>> {
  checkQuery(query);
  if (!query) {
    const page = await sessions.listSessions(scope, options);
    return { ...page, items: page.items.map(shown) };
  }
  const { limit = 50, cursor, ...filter } = options;
  checkLimit(limit);
  const read = (at: string | undefined, most: number): Promise<Page<SessionInfo>> =>
    sessions.listSessions(scope, {
      ...filter,
      limit: most,
      ...(at !== undefined && { cursor: at }),
    });
  const items: SessionInfo[] = [];
  for (let at = cursor; ; ) {
    const page = await read(at, batchSize);
    for (const [place, each] of page.items.entries()) {
      const session = shown(each);
      const { sessionId: id, title, metadata } = session;
      if (!matchesQuery(query, { id, title, metadata, text: () => '' })) continue;
      items.push(session);
      if (items.length < limit) continue;
      // Only a store can say where its list continues within a batch.
      const isLast = place + 1 === page.items.length;
      const { next } = isLast ? page : await read(at, place + 1);
      return { items, ...(next !== undefined && { next }) };
    }
    if (page.next === undefined) return { items };
    at = page.next;
  }
}

const mark = ' (fork)';

/** Calls a fork after the session it was forked from. A failure is only reported: the fork is there without a title, too. */
async function nameFork(
  sessions: TimelineSupport,
  scope: Scope,
  sessionId: string,
  host: AgentHost,
): Promise<void> {
  try {
    const source = (await sessions.getSession(scope, sessionId))?.forkedFrom;
    const title = source && (await sessions.getSession(scope, source.sessionId))?.title;
    if (title === undefined) return;
    const defaultTitle = title.endsWith(mark) ? title : `${title}${mark}`;
    await sessions.updateSession(scope, sessionId, { defaultTitle });
  } catch (error) {
    host.report(error, { phase: 'hook', agent: scope.agent, sessionId });
  }
}
