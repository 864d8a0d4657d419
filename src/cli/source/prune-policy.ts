import type { RetentionPolicy, Scope } from '../../store/contract/store.ts';
import type { OptionSpecs, OptionValues } from '../command.ts';
import { usageError, wholeNumber } from '../parse-arguments.ts';
import { durationMs } from '../text/when.ts';
import type { OpenStore } from './open-store.ts';
import { findStoredSession } from './stored-session.ts';

/** Options that say what to delete. */
export const pruneOptions = {
  'older-than': {
    type: 'string',
    value: 'time',
    about: 'Delete snapshots older than this, such as 12h, 30d or 8w',
  },
  'keep-last': {
    type: 'string',
    value: 'number',
    about: 'Keep only this many of the newest snapshots of each session',
  },
  'keep-session': {
    type: 'string',
    multiple: true,
    value: 'id',
    about: 'Keep all snapshots of this session; can be repeated',
  },
  labelled: { type: 'boolean', about: 'Also delete labelled snapshots', destructive: true },
  'drop-sessions': {
    type: 'boolean',
    about: 'Also delete sessions whose only remaining snapshot is an old head',
    destructive: true,
  },
} as const satisfies OptionSpecs;

/** Reads the policy off the options; `resolve` completes session ids of which only the beginning was given. */
export function policyOf(options: OptionValues<typeof pruneOptions>): {
  resolve(open: OpenStore, scope: Scope | undefined): Promise<RetentionPolicy>;
} {
  const { 'older-than': age, 'keep-last': last, 'keep-session': keep } = options;
  if (age === undefined && last === undefined) {
    throw usageError('Say what to delete: --older-than, --keep-last or both.', 'prune');
  }
  const olderThan = age === undefined ? undefined : durationMs(age);
  if (age !== undefined && olderThan === undefined) {
    throw usageError(`--older-than takes a time such as 12h, 30d or 8w, not "${age}".`, 'prune');
  }
  const policy: RetentionPolicy = {
    ...(olderThan !== undefined && { olderThan }),
    ...(last !== undefined && { keepLast: wholeNumber(last, 'keep-last') }),
    ...(options.labelled === true && { keepLabelled: false }),
    ...(options['drop-sessions'] === true && { dropSessions: true }),
  };
  return {
    async resolve(open, scope) {
      if (keep === undefined) return policy;
      // A mistyped id must not cost the session that it was meant to protect.
      if (scope === undefined) {
        throw usageError('--keep-session needs --agent, so that the id can be checked.', 'prune');
      }
      const found = await Promise.all(keep.map((id) => findStoredSession(open, scope, id)));
      return { ...policy, keepSessions: found.map(({ session }) => session.sessionId) };
    },
  };
}
