import { WaymarkError } from '../../core/error.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { Artifact } from '../../protocol/state.ts';
import type { FilePlace } from '../../store/contract/store.ts';
import { type FileArtifact, openArtifact, openFile } from '../persistence/open-artifact.ts';
import type { Agent } from '../spec/agent.ts';
import { type AgentSpec, scopeOf } from '../spec/spec.ts';

/** How an agent opens the files of its snapshots. */
export interface FileOperations extends Pick<Agent, 'openFile'> {
  /** Opens the file that an artifact of a snapshot is; `undefined` if it is something else. */
  openArtifact(
    snapshot: Pick<Snapshot, 'sessionId' | 'snapshotId'>,
    artifact: Artifact,
    owner: string | undefined,
  ): Promise<FileArtifact | undefined>;
}

// The messages are not needed.
const least = { messages: { last: 1 } };

/** Implements {@link FileOperations}: a caller opens what it can read with `getSnapshot`, and nothing else. */
export function fileOperations(spec: AgentSpec, self: () => Agent): FileOperations {
  const placeOf = (
    { sessionId, snapshotId }: Pick<Snapshot, 'sessionId' | 'snapshotId'>,
    owner: string | undefined,
  ): FilePlace => ({ scope: scopeOf(spec, owner), sessionId, runId: snapshotId });
  return {
    async openFile(ref, name, { range, owner, ...options } = {}) {
      const call = { ...options, ...(owner !== undefined && { owner }), ...least };
      const snapshot = await self().getSnapshot(ref, call);
      if (snapshot === undefined) {
        throw new WaymarkError(
          'NOT_FOUND',
          `There is no such session or snapshot of agent "${spec.name}".`,
        );
      }
      const artifact = snapshot.state?.artifacts?.find((each) => each.name === name);
      const place = placeOf(snapshot, owner);
      return await openFile(spec, place, { artifact, name }, range && { range });
    },
    openArtifact: (snapshot, artifact, owner) =>
      openArtifact(spec, placeOf(snapshot, owner), artifact),
  };
}
