import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/** An issue of the team. */
export interface Issue {
  readonly number: number;
  readonly title: string;
  readonly state: 'open' | 'closed';
  /** The key of the call that opened it, so that a call that is repeated opens no second one. */
  readonly key: string;
}

/** The issue tracker of the team: another system, which a restore does not change by itself. */
export interface Tracker {
  list(): Promise<readonly Issue[]>;
  open(title: string, key: string): Promise<Issue>;
  close(issue: number): Promise<void>;
}

/** An issue tracker in a JSON file. */
export function fileTracker(path: string): Tracker {
  let last: Promise<unknown> = Promise.resolve();
  const list = async (): Promise<readonly Issue[]> => {
    const text = await readFile(path, 'utf8').catch(() => '[]');
    return JSON.parse(text) as readonly Issue[];
  };
  /** Changes run one after another, and the file is replaced as a whole. */
  const change = <T>(
    fn: (issues: readonly Issue[]) => readonly [readonly Issue[], T],
  ): Promise<T> => {
    const changed = last.then(async () => {
      const [issues, result] = fn(await list());
      await mkdir(dirname(path), { recursive: true });
      await writeFile(`${path}.new`, JSON.stringify(issues, null, 2));
      await rename(`${path}.new`, path);
      return result;
    });
    last = changed.catch(() => {});
    return changed;
  };
  return {
    list,
    open: (title, key) =>
      change((issues) => {
        const known = issues.find((issue) => issue.key === key);
        if (known !== undefined) return [issues, known];
        const issue: Issue = { number: issues.length + 1, title, state: 'open', key };
        return [[...issues, issue], issue];
      }),
    close: (number) =>
      change((issues) => [
        issues.map((issue) => (issue.number === number ? { ...issue, state: 'closed' } : issue)),
        undefined,
      ]),
  };
}
