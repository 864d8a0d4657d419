import { defined } from '../../core/json/json.ts';
import { systemClock } from '../../core/time.ts';
import type { PruneReport, RetentionPolicy, Scope } from '../../store/contract/store.ts';
import { flag, jsonOption, number, option } from '../command.ts';
import { checkCanConfirm, confirmDeletion, deletionOptions } from '../confirm-deletion.ts';
import { UsageError } from '../parse-arguments.ts';
import {
  findStoredSession,
  type OpenStore,
  rehearse,
  scopeOf,
  scopeOptions,
  scopesOf,
  storeCommand,
} from '../source/open-store.ts';
import { type PrunePreview, previewPrune } from '../source/preview-prune.ts';
import type { Terminal } from '../terminal.ts';
import { count, oneLine, progressBar, table, when } from '../text/format.ts';

const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

/** Parses `30d`, `12h`, `90m` or `2w` to milliseconds; `undefined` for anything else. */
function durationMs(text: string): number | undefined {
  const [, count, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d|w)$/.exec(text.trim()) ?? [];
  return count === undefined ? undefined : Number(count) * units[unit as keyof typeof units];
}

export const prune = storeCommand({
  name: 'prune',
  summary: 'Delete old snapshots',
  destructive: true,
  about:
    'Deletes snapshots that are older than --older-than, or not among the newest --keep-last of their session. Heads,\nlabelled snapshots, unanswered interrupts and running turns are kept. Without --agent, prunes the whole store, for all\nowners. With --agent, prunes the sessions of that agent: those of --owner, or those without an owner. Shows what would be\ndeleted and asks for confirmation.',
  examples: [
    'prune --older-than 30d --store sqlite:waymark.db --dry-run',
    'prune --older-than 30d --store sqlite:waymark.db --yes',
    'prune --keep-last 20 --agent chat --drop-sessions --older-than 90d',
  ],
  options: {
    'older-than': option('time', 'Delete snapshots older than this, such as 12h, 30d or 8w', {
      takes: 'a time such as 12h, 30d or 8w',
      read: durationMs,
    }),
    'keep-last': number('number', 'Keep only this many of the newest snapshots of each session'),
    'keep-session': option('id', 'Keep all snapshots of this session; can be repeated', {
      multiple: true,
    }),
    labelled: flag('Also delete labelled snapshots', { destructive: true }),
    'drop-sessions': flag('Also delete sessions whose only remaining snapshot is an old head', {
      destructive: true,
    }),
    ...deletionOptions,
    ...scopeOptions,
    ...jsonOption,
  },
  check({ options, terminal }) {
    if (options['older-than'] === undefined && options['keep-last'] === undefined)
      throw new UsageError('Say what to delete: --older-than, --keep-last or both.');
    if (options.owner !== undefined && options.agent === undefined)
      throw new UsageError('--owner needs --agent.');
    checkCanConfirm(options, terminal);
  },
  async run({ options, terminal, ...open }) {
    const { agent, owner, 'dry-run': isDryRun, yes, json } = options;
    const { 'older-than': olderThan, 'keep-last': keepLast, labelled } = options;
    const scope = agent === undefined ? undefined : scopeOf(agent, owner);
    const keepSessions = await keptSessions(open, scope, options['keep-session']);
    const policy: RetentionPolicy = {
      ...defined({ olderThan, keepLast, keepSessions }),
      ...(labelled && { keepLabelled: false }),
      ...(options['drop-sessions'] && { dropSessions: true }),
    };
    if (isDryRun || !yes) {
      terminal.progress('Looking …');
      const preview = await look(open, policy, scope, options.store, terminal);
      if (preview === undefined && isDryRun) throw new UsageError(uncounted);
      const { report, partial } = preview ?? {};
      if (!json) terminal.print(preview ? previewText(preview) : uncounted);
      else if (isDryRun)
        terminal.print(JSON.stringify({ dryRun: true, ...report, ...(partial && { partial }) }));
      if (isDryRun || (report && !partial && isEmpty(report))) return undefined;
    }
    await confirmDeletion('Prune permanently?', options, terminal);
    terminal.progress('Pruning …');
    const report = await open.maintenance.prune(policy, scope, {
      onProgress: (done, { total }) => terminal.progress(progressBar('Pruning', done, total)),
    });
    return { receipt: report, text: `Deleted ${reportText(report)}.` };
  },
});

/** Completes the ids of sessions to keep: a mistyped id must not cost the session that it was meant to protect. */
async function keptSessions(
  open: OpenStore,
  scope: Scope | undefined,
  keep: readonly string[] | undefined,
): Promise<readonly string[] | undefined> {
  if (keep === undefined) return undefined;
  if (scope === undefined)
    throw new UsageError('--keep-session needs --agent, so that the id can be checked.');
  const found = await Promise.all(keep.map((id) => findStoredSession(open, scope, id)));
  return found.map(({ session }) => session.sessionId);
}

interface Preview {
  readonly report: PruneReport;
  /** Per session; absent where only the totals are known. */
  readonly sessions?: readonly PrunePreview[];
  /** Sessions that have an owner are not counted. */
  readonly partial?: boolean;
}

/** `undefined` for a whole store that cannot be copied, and whose agents are not known. */
async function look(
  open: OpenStore,
  policy: RetentionPolicy,
  scope: Scope | undefined,
  spec: string | undefined,
  { cwd }: Terminal,
): Promise<Preview | undefined> {
  if (scope === undefined && spec !== undefined) {
    const report = await rehearse(spec, cwd, (copy) => copy.prune(policy));
    return report && { report };
  }
  const scopes = scope === undefined ? scopesOf({}, open) : [scope];
  const now = systemClock.now();
  const lists = scopes.map((each) => previewPrune(open, policy, each, now));
  const sessions = (await Promise.all(lists)).flat();
  const snapshots = sessions.reduce((sum, each) => sum + each.snapshots, 0);
  const dropped = sessions.filter((each) => each.dropped).length;
  const report = { snapshots, sessions: dropped };
  return { report, sessions, ...(scope === undefined && { partial: true }) };
}

const uncounted =
  'What would be deleted cannot be counted for a whole Postgres store. To see it, use --agent (and --owner).';

function previewText({ report, sessions = [], partial }: Preview): string {
  const more = partial
    ? '\nSessions that have an owner are pruned as well, but not counted here: use --store to count them.'
    : '';
  if (isEmpty(report)) return `Nothing to delete: no snapshot matches.${more}`;
  const rows = sessions.map(({ session, snapshots, dropped }) => [
    oneLine(session.sessionId, 64),
    dropped ? `all ${snapshots}` : String(snapshots),
    when(session.updatedAt),
    oneLine(session.title ?? ''),
  ]);
  const list =
    rows.length > 0 ? `\n${table([['SESSION', 'SNAPSHOTS', 'UPDATED', 'TITLE'], ...rows])}` : '';
  return `Would delete ${reportText(report)}.${list}${more}`;
}

function isEmpty({ snapshots, sessions }: PruneReport): boolean {
  return snapshots === 0 && sessions === 0;
}

function reportText({ snapshots, sessions }: PruneReport): string {
  return `${count(snapshots, 'snapshot')} and ${count(sessions, 'session')}`;
}
