import { failedPrecondition } from '../../core/error.ts';
import { treeHashIn } from '../../protocol/artifacts.ts';
import { WorkingState } from '../../session/working-state.ts';
import type { FileHolder, FilePlace, LoadedState } from '../../store/contract/store.ts';
import type {
  TreeFolder,
  Workspace,
  WorkspaceFolder,
  WorkspaceLock,
  WorkspaceScan,
} from '../../workspace/contract/contract.ts';
import {
  lockFolder,
  lockLost,
  openFolder,
  switchTree,
  treesOf,
  workspaceOf,
} from '../workspace/folder.ts';
import { storeTree } from '../workspace/store-tree.ts';
import { hashTree, treeReader } from '../workspace/stored-tree.ts';
import { checkpoint, commit } from './commit.ts';
import type { InvocationState } from './invocation-state.ts';
import { markingLost } from './stop.ts';
import { type ActiveRun, endedWith, type TurnFiles } from './turn-state.ts';

/** Opens and locks the folder of a turn's session. One that does not exist is created from the head, or at a takeover from the checkpoint. */
export async function openWorkspace(
  invocation: InvocationState,
  run: ActiveRun,
  { isTakeover }: { readonly isTakeover: boolean },
): Promise<TurnFiles> {
  const { spec, scope, position, request, control, working } = invocation;
  const { sessionId } = position;
  const workspace = await workspaceOf(spec, { scope, sessionId, context: request.context });
  checkShared(invocation, run, workspace);
  const place = { scope, sessionId, runId: run.runId };
  const head = isTakeover ? undefined : await otherHead(invocation, run);
  const hash = head === undefined ? working.tree : treeHashIn(head.state.artifacts);
  const folder = await openFolder(spec, workspace, place, { hash, place });
  const root = rootRun(invocation, run);
  const { attempt } = root.turnBase.run ?? {};
  const lock = await lockFolder(
    spec,
    scope,
    folder,
    { runId: root.runId, ...(attempt !== undefined && { attempt }) },
    { wait: spec.concurrency === 'wait', signal: control.signal },
  );
  const onLost = (): void => control.fail(lockLost(workspace.name));
  lock.lost.addEventListener('abort', onLost, { once: true });
  return new TurnWorkspace(invocation, run, { folder, lock, place, head });
}

/** The run whose lock a foreground sub-agent shares. */
function rootRun(invocation: InvocationState, run: ActiveRun): ActiveRun {
  let root = run;
  for (let at = invocation.request.parent; at; at = at.request.parent) root = at.run ?? root;
  return root;
}

/** Sessions that may run at the same time need folders of their own. */
function checkShared(
  { spec, request }: InvocationState,
  run: ActiveRun,
  workspace: Workspace,
): void {
  const isBackground = request.startedBy !== undefined && request.parent === undefined;
  if (workspace.isPerSession || (spec.concurrency !== 'fork' && !isBackground)) return;
  const why =
    isBackground && run ? 'runs in the background of another agent' : 'forks busy sessions';
  throw failedPrecondition(
    `Agent "${spec.name}" ${why}, and its sessions share the workspace "${workspace.name}". Give each session a folder of its own, with directory.perSession().`,
  );
}

interface OpenFolder {
  readonly folder: WorkspaceFolder;
  readonly lock: WorkspaceLock;
  readonly place: FilePlace;
  /** The head, if the turn starts from another snapshot. */
  readonly head: LoadedState | undefined;
}

async function otherHead(
  { spec, scope, request, progress }: InvocationState,
  { turnBase }: ActiveRun,
): Promise<LoadedState | undefined> {
  const { snapshotId, from } = request.init;
  if (progress.turnsBegun > 0 || (snapshotId === undefined && from !== null)) return undefined;
  const { parent, sessionId } = turnBase;
  const head = await spec.turnStore.load(scope, { sessionId });
  return head?.snapshotId === parent?.snapshotId ? undefined : head;
}

/** The files of a running turn. */
class TurnWorkspace implements TurnFiles {
  readonly folder: WorkspaceFolder;
  readonly #invocation: InvocationState;
  readonly #lock: WorkspaceLock;
  readonly #place: FilePlace;
  readonly #holder: FileHolder;
  readonly #head: LoadedState | undefined;
  /** The tree that was stored last. */
  #before: TreeFolder | undefined;
  /** The head's tree, if the turn started from another one: the folder returns to it if the turn fails. */
  #headTree: string | undefined;
  /** The tree at the end of the turn, or of its last tool calls. */
  #captured: string | undefined;

  constructor(
    invocation: InvocationState,
    run: ActiveRun,
    { folder, lock, place, head }: OpenFolder,
  ) {
    this.#invocation = invocation;
    this.folder = folder;
    this.#lock = lock;
    this.#place = place;
    this.#head = head;
    const ref = run.turnBase.run;
    this.#holder = { scope: invocation.scope, ...(ref && { run: ref }) };
  }

  async start(run: ActiveRun): Promise<void> {
    const { working, position } = this.#invocation;
    const head = this.#head;
    if (head === undefined) {
      const scan = await this.#scan();
      if ((await hashTree(scan)) === working.tree) this.#before = scan.tree;
      else await this.#keepAtHead(run, await this.#store(scan));
      return;
    }
    const headTree = treeHashIn(head.state.artifacts);
    const target = working.tree;
    let kept = headTree;
    const keep = async (scan: WorkspaceScan): Promise<void> => {
      if ((await hashTree(scan)) === kept) return;
      const found = await this.#store(scan);
      if (found === kept) return;
      await this.#keepUnder(run, head, found);
      kept = found;
      position.nextIndex++;
    };
    if (target === undefined) {
      const scan = await this.#scan();
      await keep(scan);
      working.setTree(await this.#store(scan));
    } else await this.#switchTo(target, keep);
    this.#headTree = kept;
  }

  async takeOver(run: ActiveRun, midTurn: boolean): Promise<void> {
    const invocation = this.#invocation;
    const { working } = invocation;
    const target = working.tree;
    if (target === undefined) {
      if (!midTurn) await this.start(run);
      return;
    }
    let kept: string | undefined = target;
    await this.#switchTo(target, async (scan) => {
      if ((await hashTree(scan)) === kept) return;
      kept = await this.#store(scan);
      working.setTree(kept);
      await this.#saveFound(run, midTurn);
      // The calls since the checkpoint run again.
      working.setTree(target);
      await checkpoint(invocation, run, midTurn);
    });
  }

  async capture(): Promise<void> {
    if (this.#lock.lost.aborted) return;
    const { working } = this.#invocation;
    const scan = await this.#scan();
    if ((await hashTree(scan)) === working.tree) this.#before = scan.tree;
    else working.setTree(await this.#store(scan));
    this.#captured = working.tree;
  }

  async close({ failed }: { readonly failed: boolean }): Promise<void> {
    try {
      const back = failed && !this.#lock.lost.aborted ? this.#headTree : undefined;
      if (back === undefined) return;
      await this.#switchTo(back, async (scan) => {
        if ((await hashTree(scan)) === this.#captured) return;
        throw failedPrecondition(
          'The turn failed, and its files were changed meanwhile, so they stay as they are. Restore the head of the session to discard them.',
        );
      });
    } finally {
      await this.#lock.release();
    }
  }

  async #scan(): Promise<WorkspaceScan> {
    return await this.folder.scan();
  }

  async #store(scan: WorkspaceScan): Promise<string> {
    const saving = {
      files: treesOf(this.#invocation.spec),
      holder: this.#holder,
      folder: this.folder,
      before: this.#before,
    };
    const stored = await markingLost(this.#invocation, () => storeTree(saving, scan));
    this.#before = stored.scan.tree;
    return stored.hash;
  }

  async #switchTo(hash: string, keep: (scan: WorkspaceScan) => Promise<void>): Promise<void> {
    const reader = treeReader(treesOf(this.#invocation.spec), this.#place);
    this.#before = (await switchTree(this.folder, { reader, hash }, keep)).tree;
  }

  /** Saves what others have changed since the head, as an edit that the turn continues from. */
  async #keepAtHead(run: ActiveRun, hash: string): Promise<void> {
    const invocation = this.#invocation;
    const { working, spec } = invocation;
    const { parent } = run.turnBase;
    const isFirst = working.tree === undefined || parent === undefined;
    working.setTree(hash);
    const isLater = (run.detached?.inputsDone ?? 0) > 0;
    if (isFirst || isLater || spec.workspace?.listsEdits !== true) {
      // A takeover must find the files that the turn starts with.
      if (run.log.durable) await checkpoint(invocation, run, false);
      return;
    }
    await this.#commitEdit(run, 'Files of the workspace were changed outside of a turn.');
    invocation.lineage = endedWith(invocation.lineage, working.state);
  }

  /** Saves the files that were found at a takeover. */
  async #saveFound(run: ActiveRun, midTurn: boolean): Promise<void> {
    const reason = `Files that an earlier attempt of run ${run.runId} left.`;
    if (!midTurn) return await this.#commitEdit(run, reason);
    const { host } = this.#invocation;
    await commit(
      this.#invocation,
      run,
      {},
      {
        snapshotId: host.newId(),
        event: 'toolIterationEnd',
        status: 'succeeded',
        end: false,
      },
    );
  }

  async #commitEdit(run: ActiveRun, reason: string): Promise<void> {
    const { host } = this.#invocation;
    const { finishReason, totals } = run.turnBase.parent ?? {};
    await commit(
      this.#invocation,
      run,
      {},
      {
        snapshotId: host.newId(),
        event: 'edit',
        status: 'succeeded',
        edit: { reason },
        ...(finishReason && { finishReason }),
        ...(totals && { totals }),
        end: false,
      },
    );
  }

  /** Saves what others have changed since the head under it, though the turn starts elsewhere. */
  async #keepUnder(run: ActiveRun, head: LoadedState, hash: string): Promise<void> {
    const { spec, scope, host } = this.#invocation;
    const { turnIndex, finishReason } = head.snapshot;
    const { totals } = run.turnBase.parent ?? {};
    const working = new WorkingState(head.state);
    working.setTree(hash);
    await spec.turnStore.commit(scope, run.turnBase, {
      base: head,
      state: working.state,
      stateHash: working.hash(),
      parentId: head.snapshotId,
      turnIndex,
      snapshotId: host.newId(),
      event: 'edit',
      status: 'succeeded',
      edit: { reason: 'Files of the workspace were changed, and the next turn starts elsewhere.' },
      ...(finishReason && { finishReason }),
      ...(totals && { totals }),
      end: false,
    });
  }
}
