import type { AgentOperations } from '../../api/calls.ts';
import { WaymarkError } from '../../core/error.ts';
import { reportDeletedSession } from '../../core/span-sink.ts';
import { checkId } from '../../protocol/ids.ts';
import { checkMessagePage, withPage } from '../../protocol/message-page.ts';
import type { SessionInfo } from '../../protocol/session.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import { diffStates } from '../../session/diff.ts';
import { fromPlainState } from '../../session/session-state.ts';
import type { ExpectHead, Scope, TimelineSupport } from '../../store/contract/store.ts';
import type { AgentHost } from '../persistence/host.ts';
import { showsSessions, transformSession, transformSnapshot } from '../persistence/transform.ts';
import { onSnapshot, unknownSnapshot } from '../persistence/unknown-snapshot.ts';
import type { CallOptions, InvokeOptions } from '../spec/agent.ts';
import { type AgentSpec, scopeOf } from '../spec/spec.ts';
import { editSnapshot, savePartial } from './edit-snapshot.ts';
import { listShown } from './list-shown.ts';
import { listWaiting } from './list-waiting.ts';
import { nameFork } from './name-fork.ts';
import type { RunOperations } from './run-operations.ts';
import { supportOf } from './store-support.ts';

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
    async restore(snapshotId, { owner, ifHead, partial } = {}) {
      checkId(snapshotId, 'a snapshot id');
      const [sessions, scope] = use(owner);
      if (partial !== true) {
        const restored = sessions.restore(scope, snapshotId, expecting(ifHead));
        return leaving(await onSnapshot(spec, scope, snapshotId, restored));
      }
      const note = { ...(owner !== undefined && { by: owner }) };
      const whole = { note, ...expecting(ifHead) };
      const saved = savePartial({ spec, host, scope }, snapshotId, whole);
      return await readSaved(scope, await onSnapshot(spec, scope, snapshotId, saved));
    },
    async fork(snapshotId, { owner, ifHead, sessionId = host.newId() } = {}) {
      checkId(snapshotId, 'a snapshot id');
      checkId(sessionId, 'a session id');
      const [sessions, scope] = use(owner);
      const target = { sessionId, snapshotId: host.newId(), ...expecting(ifHead) };
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
        note: { ...(by !== undefined && { by }), ...(reason !== undefined && { reason }) },
        ...expecting(ifHead),
      });
      return await readSaved(scope, await onSnapshot(spec, scope, snapshotId, edited));
    },
    async diff(from, to, { owner } = {}) {
      checkId(from, 'a snapshot id');
      checkId(to, 'a snapshot id');
      const [, scope] = use(owner);
      const [a, b] = await Promise.all([from, to].map((id) => stateOf(spec, scope, id)));
      return diffStates(
        { snapshotId: from, state: fromPlainState(a ?? {}) },
        { snapshotId: to, state: fromPlainState(b ?? {}) },
      );
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
