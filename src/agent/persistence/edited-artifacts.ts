import { patchArtifact } from '../../protocol/artifacts.ts';
import type { Artifact } from '../../protocol/state.ts';
import type { Chunk } from '../../protocol/turn.ts';
import type { EventCursor, RunEvent, Scope } from '../../store/contract/store.ts';
import { type AgentSpec, fullStore } from '../spec/spec.ts';

interface EditedRun {
  readonly spec: AgentSpec;
  readonly scope: Scope;
  readonly runId: string;
}

/** Events read at a time. */
const batchSize = 500;

/** The artifacts of a run as its events change them. Stores keep an edit of a long artifact without the edited artifact. */
export class EditedArtifacts {
  readonly #run: EditedRun;
  /** Absent until the first edit: most runs have none. */
  #known: Map<string, Artifact> | undefined;

  constructor(run: EditedRun) {
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
      const page = await fullStore(spec)?.events?.read(scope, runId, {
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
