import type { RetentionPolicy } from '../../store/contract/store.ts';
import { defineCommand, jsonOption } from '../command.ts';
import { usageError, wholeNumber } from '../parse-arguments.ts';
import { openStore, scopeOptions, storeOptions } from '../source/open-store.ts';
import { durationMs } from '../text/when.ts';

/** `waymark prune` */
export const prune = defineCommand({
  name: 'prune',
  summary: 'Remove old snapshots',
  usage: '',
  about:
    'A snapshot goes when it is older than --older-than, or not among the newest --keep-last of its session.\nHeads, labelled snapshots, open interrupts and what is being worked on stay.',
  examples: [
    'prune --older-than 30d --store sqlite:waymark.db',
    'prune --keep-last 20 --agent chat --drop-sessions --older-than 90d',
  ],
  options: {
    'older-than': { type: 'string', value: 'time', about: 'Such as 12h, 30d or 8w' },
    'keep-last': { type: 'string', value: 'number', about: 'The newest n of each session stay' },
    'keep-session': {
      type: 'string',
      multiple: true,
      value: 'id',
      about: 'Never touch this session',
    },
    labelled: { type: 'boolean', about: 'Labelled ones go as well' },
    'drop-sessions': {
      type: 'boolean',
      about: 'Sessions go of which nothing but an old head would be left',
    },
    ...scopeOptions,
    ...jsonOption,
    ...storeOptions,
  },
  async run({ options, terminal }) {
    const policy = policyOf(options);
    const { agent, owner } = options;
    if (owner !== undefined && agent === undefined) throw usageError('--owner needs --agent.');
    const open = await openStore(options, terminal);
    try {
      terminal.progress('Pruning …');
      const scope =
        agent === undefined ? undefined : { agent, ...(owner !== undefined && { owner }) };
      const report = await open.maintenance.prune(policy, scope);
      if (options.json) terminal.print(JSON.stringify(report));
      else {
        terminal.print(
          `Removed ${count(report.snapshots, 'snapshot')} and ${count(report.sessions, 'session')}.`,
        );
      }
    } finally {
      await open.close();
    }
  },
});

function policyOf(options: {
  readonly 'older-than'?: string;
  readonly 'keep-last'?: string;
  readonly 'keep-session'?: readonly string[];
  readonly labelled?: boolean;
  readonly 'drop-sessions'?: boolean;
}): RetentionPolicy {
  const { 'older-than': age, 'keep-last': last, 'keep-session': keepSessions } = options;
  if (age === undefined && last === undefined) {
    throw usageError('Say what may go: --older-than, --keep-last or both.', 'prune');
  }
  const olderThan = age === undefined ? undefined : durationMs(age);
  if (age !== undefined && olderThan === undefined) {
    throw usageError(`--older-than takes a time such as 12h, 30d or 8w, not "${age}".`, 'prune');
  }
  return {
    ...(olderThan !== undefined && { olderThan }),
    ...(last !== undefined && { keepLast: wholeNumber(last, 'keep-last') }),
    ...(keepSessions && { keepSessions }),
    ...(options.labelled === true && { keepLabelled: false }),
    ...(options['drop-sessions'] === true && { dropSessions: true }),
  };
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? '' : 's'}`;
}
