import type { WatchEvent } from '../../api/types.ts';
import { raceSignal } from '../../core/async/signal.ts';
import type { WaymarkError } from '../../core/error.ts';
import { isPerRequest } from '../../core/platform.ts';
import { patchArtifact } from '../../protocol/artifacts.ts';
import { parseEventId, toEventId } from '../../protocol/ids.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { Artifact } from '../../protocol/state.ts';
import type { Chunk } from '../../protocol/turn.ts';
import type { EventCursor, RunEvent, RunRecord, Scope } from '../../store/contract/store.ts';
import type { AgentSpec } from '../contract/spec.ts';
import type { EventLog } from './event-log.ts';
import type { AgentHost } from './host.ts';
import { unknownSnapshot } from './store-errors.ts';
import { createChunkTransform, transformSnapshot } from './transform.ts';

/** How often a watcher looks again when it hears nothing; hints may be lost. In a Worker it hears nothing of other requests. */
const pollIntervalMs = isPerRequest ? 100 : 1_000;

const batchSize = 500;

interface Watching {
  readonly spec: AgentSpec;
  readonly host: AgentHost;
  readonly scope: Scope;
  readonly runId: string;
  readonly signal: AbortSignal | undefined;
}

/** Past and live events of a run, then its snapshot. */
export async function* watchRun(
  watching: Watching,
  after: string | undefined,
): AsyncGenerator<WatchEvent, void> {
  const { spec } = watching;
  const cursor = after === undefined ? undefined : parseEventId(after);
  // A transform of patches must see the turn from its start, also what the watcher has seen already.
  const hidden = spec.transform.state === undefined ? undefined : cursor;
  const leave = createChunkTransform(spec.transform, () => spec.initialState);
  let last = hidden === undefined ? cursor : undefined;
  const artifacts = new EditedArtifacts(watching);
  for await (const event of eventsOf(watching, last)) {
    const seen = hidden !== undefined && !isAfter(event, hidden);
    const { reset } = event.chunk;
    if (!seen && last !== undefined && event.attempt > last.attempt) {
      // Workers of earlier versions wrote no event for it: a client that reconnects with this id gets the reset again.
      const id = toEventId(reset === undefined ? last : event);
      yield { attempt: event.attempt, ...reset, type: 'reset', id };
    }
    last = event;
    if (reset !== undefined) continue;
    const whole = artifacts.complete(event);
    const chunk = leave(whole instanceof Promise ? await whole : whole);
    if (chunk === undefined || seen) continue;
    yield { type: 'chunk', id: toEventId(event), chunk };
  }
  const snapshot = await snapshotOf(watching);
  if (snapshot !== undefined) yield { type: 'end', snapshot };
  else if (last === undefined) throw await unknown(watching);
}

export async function waitForRun(watching: Watching): Promise<Snapshot> {
  const { spec, scope, runId } = watching;
  const { runs } = spec.store ?? {};
  for (;;) {
    const run = await runs?.getRun(scope, runId);
    if (run === undefined || isAbandoned(run)) break;
    const changed = listen(watching);
    try {
      await changed.wait();
    } finally {
      changed.close();
    }
  }
  const snapshot = await snapshotOf(watching);
  if (snapshot === undefined) throw await unknown(watching);
  return snapshot;
}

async function* eventsOf(
  watching: Watching,
  after: EventCursor | undefined,
): AsyncGenerator<RunEvent, void> {
  let cursor = after;
  const log = localLog(watching, after);
  if (log !== undefined) {
    for await (const event of localEvents(watching, log, after)) {
      cursor = event;
      yield event;
    }
    if (!log.durable) return;
  }
  yield* storedEvents(watching, cursor);
}

/** The log in this process, if it has everything that the watcher wants. */
function localLog(
  { host, scope, runId }: Watching,
  after: EventCursor | undefined,
): EventLog | undefined {
  const log = host.logs.get(runId, scope);
  if (log === undefined || log.truncated) return undefined;
  return log.attempt === (after?.attempt ?? 1) ? log : undefined;
}

async function* localEvents(
  { host, signal }: Watching,
  log: EventLog,
  after: EventCursor | undefined,
): AsyncGenerator<RunEvent, void> {
  const { buffer } = log;
  let position = log.positionAfter(after);
  let woken = Promise.withResolvers<void>();
  const unlisten = isPerRequest ? () => {} : buffer.onEvent(() => woken.resolve());
  try {
    for (;;) {
      const { ended } = log;
      while (position < buffer.end) {
        // The log has dropped events before this watcher read them. The store has those of a durable run.
        if (position < buffer.first && log.durable) return;
        position = Math.max(position, buffer.first);
        const event = buffer.at(position++);
        if (event !== undefined) yield event;
      }
      if (ended) return;
      if (isPerRequest) await host.clock.sleep(pollIntervalMs, signal);
      else await raceSignal(woken.promise, signal);
      woken = Promise.withResolvers<void>();
    }
  } finally {
    unlisten();
  }
}

async function* storedEvents(
  watching: Watching,
  after: EventCursor | undefined,
): AsyncGenerator<RunEvent, void> {
  const { spec, scope, runId } = watching;
  const { events, runs } = spec.store ?? {};
  let cursor = after;
  for (;;) {
    // Subscribe before reading, so that no event in between is missed.
    const changed = listen(watching);
    try {
      const batch = await events?.read(scope, runId, {
        limit: batchSize,
        ...(cursor && { after: cursor }),
      });
      for (const event of batch?.events ?? []) {
        cursor = event;
        yield event;
      }
      if (batch === undefined) {
        // The events of a run in another process are not stored, but its end can still be waited for.
        if ((await runs?.getRun(scope, runId)) !== undefined) await waitForRun(watching);
        return;
      }
      if (batch.ended) return;
      if (batch.events.length === 0) {
        const run = await runs?.getRun(scope, runId);
        if (run !== undefined && isAbandoned(run)) return;
      }
      if (batch.events.length < batchSize) await changed.wait();
    } finally {
      changed.close();
    }
  }
}

/** An attached turn whose process died does not continue; any other run will be taken over. */
export function isAbandoned({ mode, expired }: RunRecord): boolean {
  return mode === 'attached' && expired;
}

function listen({ spec, host, runId, signal }: Watching): {
  readonly wait: () => Promise<void>;
  readonly close: () => void;
} {
  const store = isPerRequest ? undefined : spec.store;
  const over = new AbortController();
  const woken = Promise.withResolvers<void>();
  const wake = (): void => woken.resolve();
  const unlisten = [store?.events?.onEvents(runId, wake), store?.abort?.onChange(runId, wake)];
  return {
    wait: () =>
      raceSignal(
        Promise.race([woken.promise, host.clock.sleep(pollIntervalMs, over.signal)]),
        signal,
      ),
    close() {
      over.abort();
      for (const stop of unlisten) stop?.();
    },
  };
}

async function snapshotOf({ spec, scope, runId }: Watching): Promise<Snapshot | undefined> {
  const snapshot = await spec.store?.getSnapshot(scope, { snapshotId: runId });
  return snapshot && transformSnapshot(spec.transform, snapshot);
}

function isAfter(event: EventCursor, cursor: EventCursor): boolean {
  return (
    event.attempt > cursor.attempt || (event.attempt === cursor.attempt && event.seq > cursor.seq)
  );
}

function unknown({ spec, scope, runId }: Watching): Promise<WaymarkError> {
  const otherwise = `No run or snapshot "${runId.slice(0, 64)}" of agent "${spec.name}".`;
  return unknownSnapshot(spec, scope, runId, otherwise);
}

/** The artifacts of a run as its events change them. Stores keep an edit of a long artifact without the edited artifact. */
class EditedArtifacts {
  readonly #run: Watching;
  /** Absent until the first edit: most runs have none. */
  #known: Map<string, Artifact> | undefined;

  constructor(run: Watching) {
    this.#run = run;
  }

  /** The chunk of an event, with the artifact that its edit makes. */
  complete(event: RunEvent): Chunk | Promise<Chunk> {
    const { artifact, artifactPatch } = event.chunk;
    if (this.#known !== undefined) return this.#fold(this.#known, event.chunk);
    if (artifactPatch === undefined || artifact !== undefined) return event.chunk;
    return this.#read(event);
  }

  async #read(event: RunEvent): Promise<Chunk> {
    this.#known = await this.#artifactsBefore(event);
    return this.#fold(this.#known, event.chunk);
  }

  #fold(known: Map<string, Artifact>, chunk: Chunk): Chunk {
    const { artifact, artifactPatch } = chunk;
    const now =
      artifactPatch && !artifact
        ? patchArtifact(known.get(artifactPatch.name), artifactPatch)
        : artifact;
    if (now?.name !== undefined) known.set(now.name, now);
    return now === artifact || now === undefined ? chunk : { ...chunk, artifact: now };
  }

  /** The artifacts that the run started from, with the changes of its stored events before this one. */
  async #artifactsBefore(event: EventCursor): Promise<Map<string, Artifact>> {
    const { spec, scope, runId } = this.#run;
    const known = new Map<string, Artifact>();
    const parentId = (await spec.store?.getSnapshot(scope, { snapshotId: runId }))?.parentId;
    const parent =
      parentId === undefined
        ? undefined
        : await spec.store?.getSnapshot(scope, { snapshotId: parentId });
    for (const artifact of parent?.state?.artifacts ?? []) {
      if (artifact.name !== undefined) known.set(artifact.name, artifact);
    }
    for (let after: EventCursor | undefined; ; ) {
      const page = await spec.store?.events?.read(scope, runId, {
        limit: batchSize,
        ...(after && { after }),
      });
      for (const earlier of page?.events ?? []) {
        if (earlier.attempt === event.attempt && earlier.seq >= event.seq) return known;
        this.#fold(known, earlier.chunk);
        after = earlier;
      }
      if ((page?.events.length ?? 0) < batchSize) return known;
    }
  }
}
