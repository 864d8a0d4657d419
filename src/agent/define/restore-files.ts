import { treeHashIn } from '../../protocol/artifacts.ts';
import { WorkingState } from '../../session/working-state.ts';
import type { StateBase } from '../../store/contract/store.ts';
import type { WorkspaceScan } from '../../workspace/contract/contract.ts';
import type { AgentSpec } from '../contract/spec.ts';
import type { TurnBase } from '../contract/turn-store.ts';
import type { AgentHost } from '../persistence/host.ts';
import {
  type FolderOf,
  openFolder,
  switchTree,
  treesOf,
  workspaceOf,
} from '../workspace/folder.ts';
import { storeTree } from '../workspace/store-tree.ts';
import { hashTree, treeReader } from '../workspace/stored-tree.ts';

interface Restoring extends Omit<FolderOf, 'sessionId'> {
  readonly spec: AgentSpec;
  readonly host: AgentHost;
  /** The head that the session must have. */
  readonly expectHead: string | undefined;
}

/**
 * Restores a snapshot with its files. What others have changed in the folder is saved first, as an edit of the head. `move` moves the head,
 * and expects the present one; if it fails, the folder is as before.
 */
export async function restoreFiles<Result>(
  { spec, host, scope, context, expectHead }: Restoring,
  snapshotId: string,
  move: (expectHead: string | undefined) => Promise<Result>,
): Promise<Result> {
  const found = await spec.turnStore.load(scope, { snapshotId });
  const target = found && treeHashIn(found.state.artifacts);
  // What cannot be restored is refused below.
  if (found === undefined || target === undefined) return await move(expectHead);
  const { sessionId, status } = found.snapshot;
  if (status === 'pending' || status === 'expired' || status === 'failed') {
    return await move(expectHead);
  }
  const place = { scope, sessionId, runId: snapshotId };
  const workspace = await workspaceOf(spec, { scope, sessionId, context });
  const reader = treeReader(treesOf(spec), place);
  const runId = host.newId();
  const turnBase = await spec.turnStore.begin(scope, {
    runId,
    sessionId,
    mode: 'attached',
    from: 'head',
    init: {},
    inputs: [],
    context: {},
    ...(expectHead !== undefined && { expectHead }),
  });
  let isClaimed = true;
  const free = async (): Promise<void> => {
    if (isClaimed) await spec.turnStore.release(turnBase);
    isClaimed = false;
  };
  try {
    const kept = new KeptHead(spec, host, turnBase);
    const start = { hash: kept.tree, place };
    const folder = await openFolder(spec, workspace, { scope, sessionId }, start);
    const lock = await folder.lock({ runId });
    try {
      const keep = async (scan: WorkspaceScan): Promise<void> => {
        if ((await hashTree(scan)) === kept.tree) return;
        const holder = { scope, ...(turnBase.run && { run: turnBase.run }) };
        const saving = { files: treesOf(spec), holder, folder, before: undefined };
        const { hash } = await storeTree(saving, scan);
        if (hash !== kept.tree) await kept.save(scope, hash);
      };
      await switchTree(folder, { reader, hash: target }, keep);
      await free();
      try {
        return await move(kept.headId);
      } catch (error) {
        const { tree } = kept;
        if (tree !== undefined) await switchTree(folder, { reader, hash: tree }, async () => {});
        throw error;
      }
    } finally {
      await lock.release();
    }
  } finally {
    await free().catch(() => {});
  }
}

/** The head of a session under a claim, with the files that were saved on it. */
class KeptHead {
  readonly #spec: AgentSpec;
  readonly #host: AgentHost;
  readonly #turnBase: TurnBase;
  #base: StateBase | undefined;
  headId: string | undefined;
  tree: string | undefined;

  constructor(spec: AgentSpec, host: AgentHost, turnBase: TurnBase) {
    this.#spec = spec;
    this.#host = host;
    this.#turnBase = turnBase;
    this.#base = turnBase.base;
    this.headId = turnBase.parent?.snapshotId;
    this.tree = turnBase.base && treeHashIn(turnBase.base.state.artifacts);
  }

  async save(scope: FolderOf['scope'], tree: string): Promise<void> {
    const { spec, parent } = { spec: this.#spec, parent: this.#turnBase.parent };
    const working = new WorkingState(this.#base?.state ?? spec.freshState);
    working.setTree(tree);
    const { base } = await spec.turnStore.commit(scope, this.#turnBase, {
      ...(this.#base && { base: this.#base }),
      state: working.state,
      stateHash: working.hash(),
      ...(this.headId !== undefined && { parentId: this.headId }),
      turnIndex: parent?.turnIndex ?? 0,
      ...(parent?.finishReason && { finishReason: parent.finishReason }),
      ...(parent?.totals && { totals: parent.totals }),
      snapshotId: this.#host.newId(),
      event: 'edit',
      status: 'succeeded',
      edit: { reason: 'Files of the workspace were changed before another snapshot was restored.' },
      end: false,
    });
    this.#base = base;
    this.headId = base.snapshotId;
    this.tree = tree;
  }
}
