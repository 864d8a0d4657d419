import { treeHashIn } from '../../protocol/artifacts.ts';
import { WorkingState } from '../../session/working-state.ts';
import type { RunRef, StateBase } from '../../store/contract/store.ts';
import type { WorkspaceScan } from '../../workspace/contract/contract.ts';
import type { AgentSpec } from '../contract/spec.ts';
import type { TurnBase } from '../contract/turn-store.ts';
import type { AgentHost } from '../persistence/host.ts';
import {
  type FolderOf,
  lockFolder,
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
}

/**
 * Restores a snapshot with its files. What others have changed in the folder is saved first, as an edit of the head. `move` moves the head,
 * and expects the present one; if it fails, the folder is as before.
 */
export async function restoreFiles<Result>(
  restoring: Restoring & { readonly expectHead: string | undefined },
  snapshotId: string,
  move: (expectHead: string | undefined) => Promise<Result>,
): Promise<Result> {
  const { spec, host, scope, expectHead } = restoring;
  const found = await spec.turnStore.load(scope, { snapshotId });
  const target = found && treeHashIn(found.state.artifacts);
  // Other snapshots are refused below.
  if (found === undefined || target === undefined) return await move(expectHead);
  const { sessionId, status } = found.snapshot;
  if (status === 'pending' || status === 'expired' || status === 'failed') {
    return await move(expectHead);
  }
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
  const head = new KeptHead(spec, host, turnBase);
  try {
    return await switchFiles(restoring, { head, runId, snapshotId, target }, async () => {
      await free();
      return await move(head.headId);
    });
  } finally {
    await free().catch(() => {});
  }
}

/** Does the same within a run that holds the session. `before` is done once the folder is known to be there, and before its files change. */
export async function restoreFilesInRun<Result>(
  restoring: Restoring,
  { turnBase, to }: { readonly turnBase: TurnBase & { readonly run: RunRef }; readonly to: string },
  steps: {
    readonly before: () => Promise<void>;
    readonly move: () => Promise<Result>;
    /** The head has been edited. */
    readonly onEdit: (head: StateBase) => void;
  },
): Promise<Result> {
  const { spec, host, scope } = restoring;
  const found = await spec.turnStore.load(scope, { snapshotId: to });
  const target = found && treeHashIn(found.state.artifacts);
  if (target === undefined) {
    await steps.before();
    return await steps.move();
  }
  const head = new KeptHead(spec, host, turnBase, steps.onEdit);
  const place = { head, ...turnBase.run, snapshotId: to, target };
  return await switchFiles(restoring, place, steps.move, steps.before);
}

/** Saves the files of the folder at the head, replaces them, and moves the head. If that fails, the files are as before. */
async function switchFiles<Result>(
  { spec, scope, context }: Restoring,
  {
    head,
    runId,
    attempt,
    snapshotId,
    target,
  }: {
    readonly head: KeptHead;
    readonly runId: string;
    readonly attempt?: number;
    readonly snapshotId: string;
    readonly target: string;
  },
  move: () => Promise<Result>,
  before?: () => Promise<void>,
): Promise<Result> {
  const { run, sessionId } = head.turnBase;
  const place = { scope, sessionId, runId: snapshotId };
  const workspace = await workspaceOf(spec, { scope, sessionId, context });
  const reader = treeReader(treesOf(spec), place);
  const folder = await openFolder(spec, workspace, place, { hash: head.tree, place });
  const owner = { runId, ...(attempt !== undefined && { attempt }) };
  const lock = await lockFolder(spec, scope, folder, owner);
  let isBegun = false;
  const keep = async (scan: WorkspaceScan): Promise<void> => {
    if ((await hashTree(scan)) !== head.tree) {
      const holder = { scope, ...(run && { run }) };
      const saving = { files: treesOf(spec), holder, folder, before: undefined };
      const { hash } = await storeTree(saving, scan);
      if (hash !== head.tree) await head.save(scope, hash);
    }
    if (!isBegun) await before?.();
    isBegun = true;
  };
  try {
    await switchTree(folder, { reader, hash: target }, keep);
    try {
      return await move();
    } catch (error) {
      const { tree } = head;
      if (tree !== undefined) await switchTree(folder, { reader, hash: tree }, async () => {});
      throw error;
    }
  } finally {
    await lock.release();
  }
}

/** The head of a session under a claim, with the files that were saved on it. */
class KeptHead {
  readonly #spec: AgentSpec;
  readonly #host: AgentHost;
  readonly turnBase: TurnBase;
  readonly #onSave: ((head: StateBase) => void) | undefined;
  #base: StateBase | undefined;
  headId: string | undefined;
  tree: string | undefined;

  constructor(
    spec: AgentSpec,
    host: AgentHost,
    turnBase: TurnBase,
    onSave?: (head: StateBase) => void,
  ) {
    this.#spec = spec;
    this.#host = host;
    this.turnBase = turnBase;
    this.#onSave = onSave;
    this.#base = turnBase.base;
    this.headId = turnBase.parent?.snapshotId;
    this.tree = turnBase.base && treeHashIn(turnBase.base.state.artifacts);
  }

  async save(scope: FolderOf['scope'], tree: string): Promise<void> {
    const { spec, parent } = { spec: this.#spec, parent: this.turnBase.parent };
    const working = new WorkingState(this.#base?.state ?? spec.freshState);
    working.setTree(tree);
    const { base } = await spec.turnStore.commit(scope, this.turnBase, {
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
    this.#onSave?.(base);
  }
}
