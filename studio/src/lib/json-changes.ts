import { commonEnds } from '../../../src/core/diff.ts';
import { jsonEqual } from '../../../src/core/json/json.ts';
import { isRecord, type Json, type JsonRecord } from './json.ts';

/** One place at which two documents differ. */
export interface Change {
  /** The way to it: keys and places, from the outside in; empty for the whole document. */
  readonly path: readonly (string | number)[];
  readonly kind: 'added' | 'removed' | 'changed';
  readonly before?: Json | undefined;
  readonly after?: Json | undefined;
}

/** Where two documents differ, by path; lists are compared from both ends, so that an insertion is one change. */
export function changesBetween(
  before: Json | undefined,
  after: Json | undefined,
  path: Change['path'] = [],
): readonly Change[] {
  if (jsonEqual(before, after)) return [];
  // A value that is set for the first time is shown field by field.
  if (before === undefined && path.length === 0 && isRecord(after))
    return changesBetween({}, after);
  if (before === undefined) return [{ path, kind: 'added', after }];
  if (after === undefined) return [{ path, kind: 'removed', before }];
  if (Array.isArray(before) && Array.isArray(after)) return listChanges(before, after, path);
  if (!isRecord(before) || !isRecord(after)) return [{ path, kind: 'changed', before, after }];
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  // Every object knows `constructor`; only what is its own counts.
  const own = (record: JsonRecord, key: string): Json | undefined =>
    Object.hasOwn(record, key) ? record[key] : undefined;
  return [...keys].flatMap((key) =>
    changesBetween(own(before, key), own(after, key), [...path, key]),
  );
}

function listChanges(
  before: readonly Json[],
  after: readonly Json[],
  path: Change['path'],
): readonly Change[] {
  const { head: start, tail } = commonEnds(before, after, jsonEqual);
  const removed = before.slice(start, before.length - tail);
  const added = after.slice(start, after.length - tail);
  const changes: Change[] = [];
  for (let at = 0; at < Math.max(removed.length, added.length); at++) {
    changes.push(...changesBetween(removed[at], added[at], [...path, start + at]));
  }
  return changes;
}

/** A path as people write it: `topics[2].name`. */
export function pathText(path: Change['path']): string {
  if (path.length === 0) return 'everything';
  return path
    .map((step, at) => {
      if (typeof step === 'number') return `[${step}]`;
      const plain = /^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(step);
      if (!plain) return `[${JSON.stringify(step)}]`;
      return at === 0 ? step : `.${step}`;
    })
    .join('');
}
