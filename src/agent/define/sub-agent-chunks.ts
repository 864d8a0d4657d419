import type { Artifact } from '../../protocol/state.ts';
import type { Chunk } from '../../protocol/turn.ts';
import type { InvocationState } from '../turn/invocation-state.ts';
import { isSameArtifact } from '../turn/state-chunks.ts';

/** Adds the artifacts that have not arrived as chunks before: those that were there, or came after the sub-agent's last turn. */
export function bringArtifacts(
  parent: InvocationState,
  agent: string,
  given: readonly Artifact[],
): void {
  const { working, chunkSink } = parent;
  for (const each of given) {
    const artifact = namespaced(agent, each);
    if (working.state.artifacts.some((other) => isSameArtifact(other, artifact))) continue;
    working.addArtifacts([artifact], { quiet: true, files: 'stored' });
    chunkSink.push({ artifact, agent });
  }
}

/** Shows what the sub-agent says in the parent's stream. What is about its own session stays with it. */
export async function passOn(
  parent: InvocationState | undefined,
  agent: string,
  ref: string,
  chunk: Chunk,
): Promise<void> {
  if (parent === undefined) return;
  const { modelChunk, status, artifact } = chunk;
  const named = artifact && namespaced(agent, artifact);
  if (named !== undefined) parent.working.addArtifacts([named], { quiet: true, files: 'stored' });
  if (modelChunk === undefined && status === undefined && named === undefined) return;
  await parent.chunkSink.send({
    ...(modelChunk && { modelChunk }),
    ...(status !== undefined && { status }),
    ...(named && { artifact: named }),
    agent: chunk.agent === undefined ? agent : `${agent}/${chunk.agent}`,
    agentRef: chunk.agentRef === undefined ? ref : `${ref}/${chunk.agentRef}`,
  });
}

function namespaced(agent: string, artifact: Artifact): Artifact {
  return artifact.name === undefined
    ? artifact
    : { ...artifact, name: `${agent}/${artifact.name}` };
}
