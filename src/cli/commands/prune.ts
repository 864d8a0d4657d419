import { systemClock } from '../../core/time/clock.ts';
import type { PruneReport, RetentionPolicy, Scope } from '../../store/contract/store.ts';
import { defineCommand, jsonOption } from '../command.ts';
import { checkCanConfirm, confirmDeletion, deletionOptions } from '../confirm-deletion.ts';
import { usageError } from '../parse-arguments.ts';
import { type OpenStore, openStore, scopeOptions, storeOptions } from '../source/open-store.ts';
import { type PrunePreview, previewPrune } from '../source/preview-prune.ts';
import { policyOf, pruneOptions } from '../source/prune-policy.ts';
import { rehearse } from '../source/rehearse.ts';
import { scopesOf } from '../source/stored-session.ts';
import type { Terminal } from '../terminal.ts';
import { count } from '../text/count.ts';
import { progressBar } from '../text/progress-bar.ts';
import { oneLine } from '../text/safe.ts';
import { table } from '../text/table.ts';
import { when } from '../text/when.ts';

/** `waymark prune` */
export const prune = defineCommand({
  name: 'prune',
  summary: 'Delete old snapshots',
  usage: '',
  destructive: true,
  about:
    'Deletes snapshots that are older than --older-than, or not among the newest --keep-last of their session. Heads,\nlabelled snapshots, unanswered interrupts and running turns are kept. Without --agent, prunes the whole store, for all\nowners. With --agent, prunes the sessions of that agent: those of --owner, or those without an owner. Shows what would be\ndeleted and asks for confirmation.',
  examples: [
    'prune --older-than 30d --store sqlite:waymark.db --dry-run',
    'prune --older-than 30d --store sqlite:waymark.db --yes',
    'prune --keep-last 20 --agent chat --drop-sessions --older-than 90d',
  ],
  options: {
    ...pruneOptions,
    ...deletionOptions,
    ...scopeOptions,
    ...jsonOption,
    ...storeOptions,
  },
  async run({ options, terminal }) {
    const { agent, owner } = options;
    const given = policyOf(options);
    if (owner !== undefined && agent === undefined) {
      throw usageError('--owner needs --agent.', 'prune');
    }
    checkCanConfirm(options, terminal, 'prune');
    const open = await openStore(options, terminal);
    try {
      const scope =
        agent === undefined ? undefined : { agent, ...(owner !== undefined && { owner }) };
      const policy = await given.resolve(open, scope);
      const isJson = options.json === true;
      if (options['dry-run'] || !options.yes) {
        terminal.progress('Looking …');
        const preview = await look(open, policy, scope, options.store, terminal);
        showPreview(preview, options, terminal);
        if (options['dry-run'] || (preview && !preview.partial && isEmpty(preview.report))) return;
      }
      await confirmDeletion('Prune permanently?', options, terminal);
      terminal.progress('Pruning …');
      const report = await open.maintenance.prune(policy, scope, {
        onProgress: (done, { total }) => terminal.progress(progressBar('Pruning', done, total)),
      });
      terminal.print(isJson ? JSON.stringify(report) : `Deleted ${reportText(report)}.`);
    } finally {
      await open.close();
    }
  },
});

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

function showPreview(
  preview: Preview | undefined,
  { json, 'dry-run': isDryRun }: { readonly json?: boolean; readonly 'dry-run'?: boolean },
  terminal: Terminal,
): void {
  if (preview === undefined) {
    if (isDryRun) throw usageError(uncounted, 'prune');
    if (!json) terminal.print(uncounted);
  } else if (!json) terminal.print(previewText(preview));
  else if (isDryRun) {
    const { report, partial } = preview;
    terminal.print(JSON.stringify({ dryRun: true, ...report, ...(partial && { partial }) }));
  }
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
