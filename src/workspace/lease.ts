import { throwIfAborted } from '../core/async/signal.ts';
import { backoff, systemClock } from '../core/time.ts';
import type { LockOptions, LockOwner, WorkspaceLock } from './contract/contract.ts';
import { busy, lostLock, notLocked } from './errors.ts';
import {
  type FoundLease,
  isGone,
  type LeaseFiles,
  type LeaseRecord,
  leaseFiles,
  thisProcess,
} from './lease-file.ts';

/** The lock of a folder, which excludes all other owners in all processes and hosts that share it. */
export interface FolderLock {
  acquire(owner: LockOwner, options?: LockOptions): Promise<WorkspaceLock>;
  /** ABORTED or FAILED_PRECONDITION if this process does not have it, or no longer. */
  check(): void;
}

/** How long an owner may be silent before its lease is taken over. */
const defaultLeaseMs = 30_000;
/** Number of heartbeats while a lease lasts. */
const beats = 6;

/** The lease of this process. */
interface Held {
  readonly owner: LockOwner;
  readonly generation: number;
  readonly lost: AbortController;
  count: number;
  stop(): void;
}

// By folder: all that open it in this process share them.
const held = new Map<string, Held>();

export function folderLock(
  root: string,
  {
    workspace,
    leaseMs = defaultLeaseMs,
  }: { readonly workspace: string; readonly leaseMs?: number },
): FolderLock {
  const files = leaseFiles(root);
  const beatMs = leaseMs / beats;

  const share = (mine: Held): WorkspaceLock => {
    mine.count++;
    let isReleased = false;
    return {
      lost: mine.lost.signal,
      async release() {
        if (isReleased) return;
        isReleased = true;
        if (--mine.count > 0) return;
        mine.stop();
        if (held.get(root) === mine) held.delete(root);
        if (mine.lost.signal.aborted) return;
        try {
          files.write(mine.generation, released(mine.owner));
        } catch {
          // The disk is full, or the folder is gone. Without heartbeats, the lease ends too.
        }
      },
    };
  };

  const begin = (generation: number, owner: LockOwner): Held => {
    const lost = new AbortController();
    let beat = 0;
    const stop = systemClock.every(beatMs, () => {
      try {
        if (isLost(files, generation)) return lose(mine);
        files.write(generation, { ...recordOf(owner), beat: ++beat });
      } catch {
        // The next heartbeat tries again. If none succeeds, another process takes the lock, which the check finds.
      }
    });
    const mine: Held = { owner, generation, lost, count: 0, stop };
    held.set(root, mine);
    return mine;
  };

  const lose = (mine: Held): void => {
    mine.stop();
    if (held.get(root) === mine) held.delete(root);
    mine.lost.abort(lostLock(workspace));
  };

  /** Takes the lock, or tells who has it. */
  const attempt = (owner: LockOwner, ignored?: FoundLease): Held | FoundLease => {
    for (;;) {
      const found = files.find();
      const isFree = found === undefined || mayTake(found.record, owner) || isSame(found, ignored);
      if (!isFree) return found;
      const generation = (found?.generation ?? 0) + 1;
      if (!files.create(generation, recordOf(owner))) continue;
      const before = held.get(root);
      if (before !== undefined) lose(before);
      return begin(generation, owner);
    }
  };

  return {
    async acquire(owner, { wait = false, signal } = {}) {
      let suspect: { readonly lease: FoundLease; readonly since: number } | undefined;
      for (let tries = 1; ; tries++) {
        throwIfAborted(signal);
        const mine = held.get(root);
        if (mine !== undefined && isOwner(mine.owner, owner)) {
          if (!isLost(files, mine.generation)) return share(mine);
          lose(mine);
        } else if (mine !== undefined && files.find() === undefined) {
          // Its file was removed, such as by `git clean`, and the next heartbeat writes it again.
          files.write(mine.generation, recordOf(mine.owner));
        }
        const isSilent = suspect !== undefined && performance.now() - suspect.since > 2 * beatMs;
        const found = attempt(owner, isSilent ? suspect?.lease : undefined);
        if ('lost' in found) return share(found);
        // Its clock may have jumped: a lease that looks old is taken over only if no heartbeat comes.
        if (files.ageOf(found.generation) <= leaseMs) suspect = undefined;
        else if (!isSame(found, suspect?.lease))
          suspect = { lease: found, since: performance.now() };
        const isStale = found.record !== undefined && isOlder(found.record, owner);
        if (isStale || (!wait && suspect === undefined)) throw busy(found.record?.runId, workspace);
        await systemClock.sleep(backoff(Math.min(tries, 10), { baseMs: 10, maxMs: 250 }), signal);
      }
    },
    check() {
      const mine = held.get(root);
      if (mine === undefined) throw notLocked(workspace);
      if (!isLost(files, mine.generation)) return;
      lose(mine);
      throw lostLock(workspace);
    },
  };
}

function recordOf({ runId, attempt = 0 }: LockOwner): LeaseRecord {
  return { runId, attempt, process: thisProcess(), beat: 0 };
}

function released({ runId, attempt = 0 }: LockOwner): LeaseRecord {
  return { runId, attempt, beat: 0 };
}

function isOwner(one: LockOwner, other: LockOwner): boolean {
  return one.runId === other.runId && (one.attempt ?? 0) === (other.attempt ?? 0);
}

function mayTake(record: LeaseRecord | undefined, { runId, attempt = 0 }: LockOwner): boolean {
  if (record === undefined) return false;
  if (record.process === undefined || isGone(record.process)) return true;
  return record.runId === runId && record.attempt < attempt;
}

/** Whether the caller is a stale attempt of the run that has the lock. */
function isOlder(record: LeaseRecord, { runId, attempt = 0 }: LockOwner): boolean {
  return record.runId === runId && record.attempt > attempt;
}

function isSame(one: FoundLease, other: FoundLease | undefined): boolean {
  return one.generation === other?.generation && one.record?.beat === other.record?.beat;
}

function isLost(files: LeaseFiles, generation: number): boolean {
  return (files.find()?.generation ?? 0) > generation;
}
