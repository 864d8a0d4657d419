import type {
  FoundMemoryNote,
  MemoryExport,
  MemoryPage,
  MemoryPlace,
  MemorySpan,
  MemorySupport,
  MemoryWrite,
  Scope,
} from '../contract/store.ts';
import { emptyNote, memoryPage } from '../rules/memory.ts';
import {
  dropVersions,
  keyOf,
  type MemoryRows,
  type MemoryTable,
  type StoredVersion,
} from './memory-rows.ts';
import { findSession, type SessionRow, type SnapshotRow, type Tables } from './tables.ts';

/** Removes what came from sessions. */
export function dropMemoryOf({ memory }: Tables, sessions: Iterable<SessionRow>): void {
  const byOwner = Map.groupBy(sessions, ({ scope }) => scope.owner ?? '');
  for (const [owner, gone] of byOwner) {
    const rows = memory.of(owner);
    const keys = new Set(
      gone.map(({ scope: { agent }, id: sessionId }) => keyOf({ agent, sessionId })),
    );
    const { versions } = rows.all();
    dropVersions(
      memory,
      versions.filter(({ source }) => source !== undefined && keys.has(keyOf(source))),
    );
    if (rows.dropSessions(keys)) memory.removed(owner);
  }
}

/** Saves the part of a commit or a checkpoint that belongs to memory. */
export function addMemory(
  { memory, clock }: Tables,
  { scope: { agent, owner = '' }, id: sessionId }: SessionRow,
  snapshotId: string,
  write: MemoryWrite | undefined,
): void {
  if (write === undefined) return;
  const rows = memory.of(owner);
  const createdAt = clock.now();
  const session = { agent, sessionId };
  const known = rows.place(session);
  const place = write.place && {
    ...session,
    ...write.place,
    ...(known && { family: known.family }),
  };
  const standing = place ?? known;
  let no = nextNo(memory, rows, createdAt);
  const versions = write.versions.map(
    ({ seq, message, ...version }): StoredVersion => ({
      ...version,
      no: no++,
      createdAt,
      ...(owner !== '' && { owner }),
      ...(standing && {
        source: { ...standing, snapshotId, seq, message },
      }),
    }),
  );
  const note = { ...write.note, snapshotId, ...session, createdAt };
  memory.apply(owner, { ...(place && { places: [place] }), versions, notes: [note] });
}

/** A number after all others, also those of other owners as far as the clock is right. */
function nextNo(memory: MemoryTable, rows: MemoryRows, now: number): number {
  const last = memory.owners().reduce((most, owner) => Math.max(most, memory.of(owner).lastNo), 0);
  return Math.max(now * 1000, last + 1, rows.lastNo + 1);
}

/** Gives a fork the memory of the snapshot that it was made of. */
export function forkMemory(
  { memory, clock }: Tables,
  source: SnapshotRow,
  { session: { scope, id: sessionId }, id: snapshotId }: SnapshotRow,
  place: MemoryPlace,
): void {
  const { agent, owner = '' } = scope;
  const rows = memory.of(owner);
  const from = { agent, sessionId: source.session.id };
  const known = rows.place(from);
  const { family } = known ?? place;
  // The id of its first snapshot names its lane.
  const made = { agent, sessionId, family, lane: snapshotId };
  const note = { ...emptyNote, path: pathOf(rows, source), ...{ snapshotId, agent, sessionId } };
  memory.apply(owner, {
    places: [...(known === undefined ? [{ ...from, ...place }] : []), made],
    notes: [{ ...note, createdAt: clock.now() }],
  });
}

/** The path to a snapshot: its own, or that of its nearest ancestor that has one. */
function pathOf(rows: MemoryRows, snapshot: SnapshotRow | undefined): readonly MemorySpan[] {
  for (let at = snapshot; at !== undefined; at = at.parent) {
    const note = rows.note(at.id);
    if (note !== undefined) return note.path;
  }
  return [];
}

export function memorySupport(tables: Tables): MemorySupport {
  const { memory } = tables;
  return {
    read: async ({ key, owner }, after) => {
      const owners = owner === undefined ? memory.owners() : [owner];
      return pageOf(
        owners.flatMap((each) => memory.of(each).versions(key)),
        after,
      );
    },
    async add(version, owner = '') {
      const rows = memory.of(owner);
      const createdAt = tables.clock.now();
      const no = nextNo(memory, rows, createdAt);
      const added = { ...version, no, createdAt, ...(owner !== '' && { owner }) };
      memory.apply(owner, { versions: [added] });
    },
    async remove({ key, owner }, entries) {
      const from = new Map(entries.map((entry) => [entry, 0]));
      for (const each of owner === undefined ? memory.owners() : [owner]) {
        const rows = memory.of(each);
        if (rows.dropVersions(from, key)) memory.removed(each);
      }
    },
    async session(scope: Scope, sessionId) {
      const rows = memory.of(scope.owner ?? '');
      const headId = findSession(tables, scope, sessionId)?.head?.id;
      const place = rows.place({ agent: scope.agent, sessionId });
      return {
        last: rows.last(place?.lane),
        ...(place && { family: place.family, lane: place.lane }),
        ...(headId !== undefined && { headId }),
      };
    },
    note: async (owner, snapshotId) => readNote(tables, owner, snapshotId),
    exportSession: async (...which) => exportSession(tables, ...which),
    importSession: async (...read) => importSession(tables, ...read),
    async heads(families) {
      const wanted = new Set(families);
      const paths = new Map<string, (readonly MemorySpan[])[]>();
      for (const owner of memory.owners()) {
        const rows = memory.of(owner);
        for (const { agent, sessionId, family } of rows.places()) {
          if (!wanted.has(family)) continue;
          const scope = { agent, ...(owner !== '' && { owner }) };
          const head = findSession(tables, scope, sessionId)?.head;
          if (head === undefined) continue;
          const known = paths.get(family) ?? [];
          known.push(pathOf(rows, head));
          paths.set(family, known);
        }
      }
      return paths;
    },
  };
}

/** The entries that a session has written; `undefined` if it has not used memory. */
function exportSession(
  { memory }: Tables,
  { agent, owner = '' }: Scope,
  sessionId: string,
): MemoryExport | undefined {
  const rows = memory.of(owner);
  const key = keyOf({ agent, sessionId });
  const { versions, notes: all } = rows.all();
  const notes = all.filter((note) => keyOf(note) === key);
  const [first] = notes;
  const place = rows.place({ agent, sessionId });
  if (place === undefined && first === undefined) return undefined;
  return {
    // A session that has only read gets its place with the import.
    family: place?.family ?? first?.snapshotId ?? '',
    lane: place?.lane ?? first?.snapshotId ?? '',
    versions: versions.flatMap(({ no: _, owner: __, source, ...version }) => {
      if (source === undefined || keyOf(source) !== key) return [];
      const { snapshotId, seq, message } = source;
      return [{ ...version, snapshotId, seq, message }];
    }),
    notes: notes.map(({ snapshotId, path, given, createdAt }) => ({
      snapshotId,
      path,
      given,
      createdAt,
    })),
  };
}

function importSession(
  tables: Tables,
  scope: Scope,
  sessionId: string,
  { family, lane, versions, notes }: MemoryExport,
): void {
  if (findSession(tables, scope, sessionId) === undefined) return;
  const { memory, clock } = tables;
  const { agent, owner = '' } = scope;
  const place = { agent, sessionId, family, lane };
  let no = nextNo(memory, memory.of(owner), clock.now());
  memory.apply(owner, {
    places: [place],
    versions: versions.map(({ snapshotId, seq, message, ...version }) => ({
      ...version,
      no: no++,
      ...(owner !== '' && { owner }),
      source: { ...place, snapshotId, seq, message },
    })),
    notes: notes.map((note) => ({ ...note, agent, sessionId })),
  });
}

function pageOf(all: readonly StoredVersion[], after: number): MemoryPage {
  const sorted = all.filter(({ no }) => no > after).sort((a, b) => a.no - b.no);
  const versions = sorted.slice(0, memoryPage).map(({ scope: _, ...version }) => version);
  return versions.length === memoryPage ? { versions } : { versions, count: all.length };
}

function readNote(
  tables: Tables,
  owner: string | undefined,
  snapshotId: string,
): FoundMemoryNote | undefined {
  const rows = tables.memory.of(owner ?? '');
  const own = rows.note(snapshotId);
  const snapshot = tables.snapshots.get(snapshotId);
  if (own !== undefined) {
    const { agent, sessionId, snapshotId: _, ...note } = own;
    const family = rows.place({ agent, sessionId })?.family;
    return { ...note, ...(family !== undefined && { family }) };
  }
  if (snapshot === undefined || snapshot.session.scope.owner !== owner) return undefined;
  const { scope, id: sessionId } = snapshot.session;
  const family = rows.place({ agent: scope.agent, sessionId })?.family;
  const note = { given: [], createdAt: snapshot.createdAt, path: pathOf(rows, snapshot) };
  return { ...note, ...(family !== undefined && { family }) };
}
