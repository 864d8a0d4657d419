import { isWaymarkError } from '../../core/error.ts';
import { namesOfNode } from '../../session/tree-node.ts';
import { damagedFile, hashOfBytes } from './file-pieces.ts';

interface TreeReading<Step, Answer> {
  /** Reads a node; `undefined` if it is not in the store. */
  readonly node: (hash: string) => Generator<Step, Uint8Array | undefined, Answer>;
  /** The fault of a file; `undefined`: none. */
  readonly problemOfFile: (hash: string) => Generator<Step, string | undefined, Answer>;
  /** The faults of nodes that were looked at before, by hash. */
  readonly seen: Map<string, readonly string[]>;
}

/** The faults of a tree: of its nodes, and of the files that they name. Each node is read once. */
export function* treeProblems<Step, Answer>(
  hash: string,
  reading: TreeReading<Step, Answer>,
): Generator<Step, readonly string[], Answer> {
  const known = reading.seen.get(hash);
  if (known !== undefined) return known;
  const found = yield* problemsOf(hash, reading);
  reading.seen.set(hash, found);
  return found;
}

function* problemsOf<Step, Answer>(
  hash: string,
  reading: TreeReading<Step, Answer>,
): Generator<Step, readonly string[], Answer> {
  try {
    const bytes = yield* reading.node(hash);
    if (bytes === undefined) return [damagedFile(hash, 'it is missing').message];
    if (hashOfBytes(bytes) !== hash) {
      return [damagedFile(hash, 'its content does not fit its hash').message];
    }
    const problems: string[] = [];
    const { files, nodes } = namesOfNode(bytes);
    for (const file of files) {
      const problem = yield* reading.problemOfFile(file);
      if (problem !== undefined) problems.push(problem);
    }
    for (const node of nodes) problems.push(...(yield* treeProblems(node, reading)));
    return problems;
  } catch (error) {
    if (isWaymarkError(error) && error.status === 'DATA_LOSS') return [error.message];
    throw error;
  }
}
