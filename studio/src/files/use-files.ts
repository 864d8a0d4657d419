import { useEffect, useState } from 'react';
import type { FileDiff, FileInfo, RemoteAgent } from '../../../src/client/index.ts';

/** Files that are listed at most: a tree of more is not looked through by hand. */
const maxListed = 5_000;

/** The files of a workspace as a snapshot has them. */
export interface ListedFiles {
  readonly snapshotId: string;
  readonly files: readonly FileInfo[];
  /** Whether there are more. */
  readonly isCut: boolean;
}

/** The files of a snapshot, once they are there; `undefined` before, and without a snapshot. */
export function useFiles(
  agent: RemoteAgent,
  snapshotId: string | undefined,
): ListedFiles | undefined {
  const [listed, setListed] = useState<ListedFiles>();
  useEffect(() => {
    if (snapshotId === undefined) return;
    let isCurrent = true;
    const set = (files: ListedFiles): void => {
      if (isCurrent) setListed(files);
    };
    const timer = setTimeout(() => {
      // A server before workspaces has no such call.
      list(agent, snapshotId).then(set, () => set({ snapshotId, files: [], isCut: false }));
    }, 60);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [agent, snapshotId]);
  return listed?.snapshotId === snapshotId ? listed : undefined;
}

async function list(agent: RemoteAgent, snapshotId: string): Promise<ListedFiles> {
  const files: FileInfo[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await agent.listFiles(snapshotId, cursor === undefined ? {} : { cursor });
    files.push(...page.items);
    if (page.next === undefined) return { snapshotId, files, isCut: false };
    if (files.length >= maxListed) return { snapshotId, files, isCut: true };
    cursor = page.next;
  }
}

/** The files of the workspace that differ between two snapshots, once they are known. */
export function useFileDiffs(
  agent: RemoteAgent,
  from: string | undefined,
  to: string | undefined,
): readonly FileDiff[] | undefined {
  const [read, setRead] = useState<{ readonly key: string; readonly files: readonly FileDiff[] }>();
  const key = from === undefined || to === undefined ? undefined : `${from} ${to}`;
  useEffect(() => {
    if (from === undefined || to === undefined) return;
    let isCurrent = true;
    const timer = setTimeout(() => {
      agent.diff(from, to).then(
        ({ files = [] }) => isCurrent && setRead({ key: `${from} ${to}`, files }),
        () => {},
      );
    }, 60);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [agent, from, to]);
  return key !== undefined && read?.key === key ? read.files : undefined;
}
