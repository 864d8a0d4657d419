import { systemClock } from '../../core/time/clock.ts';
import type { PruneReport, RetentionPolicy, Scope } from '../../store/contract/store.ts';
import { defineCommand, jsonOption } from '../command.ts';
import { checkCanConfirm, confirmDeletion, deletionOptions } from '../confirm-deletion.ts';
import { usageError } from '../parse-arguments.ts';
import { type OpenStore, openStore, scopeOptions, storeOptions } from '../source/open-store.ts';
import { type PrunePreview, previewPrune } from '../source/preview-prune.ts';
import { policyOf, pruneOptions } from '../source/prune-policy.ts';
import { rehearse } from '../source/rehearse.ts';
import type { Terminal } from '../terminal.ts';
import { count } from '../text/count.ts';
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
    'Deletes snapshots that are older than --older-than, or not among the newest --keep-last of their session. Heads,\nlabelled snapshots, unanswered interrupts and running turns stay. Without --agent, the whole store is pruned, for all\nowners. Shows what would be deleted, and asks.',
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
        if (options['dry-run']) return showPreview(preview, isJson, terminal);
        if (!isJson) showPreview(preview, false, terminal);
        if (preview && isEmpty(preview.report)) return;
      }
      await confirmDeletion('Prune permanently?', options, terminal);
      terminal.progress('Pruning …');
      const report = await open.maintenance.prune(policy, scope);
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
}

/** `undefined` where the store cannot tell beforehand: a whole store whose owners are not known. */
async function look(
  open: OpenStore,
  policy: RetentionPolicy,
  scope: Scope | undefined,
  spec: string | undefined,
  { cwd }: Terminal,
): Promise<Preview | undefined> {
  if (scope === undefined) {
    const report =
      spec === undefined ? undefined : await rehearse(spec, cwd, (copy) => copy.prune(policy));
    return report && { report };
  }
  const sessions = await previewPrune(open, policy, scope, systemClock.now());
  const snapshots = sessions.reduce((sum, each) => sum + each.snapshots, 0);
  const dropped = sessions.filter((each) => each.dropped).length;
  return { report: { snapshots, sessions: dropped }, sessions };
}

function showPreview(preview: Preview | undefined, json: boolean, terminal: Terminal): void {
  if (preview === undefined) {
    if (json) throw usageError(uncounted, 'prune');
    terminal.print(uncounted);
  } else if (json) terminal.print(JSON.stringify({ dryRun: true, ...preview.report }));
  else terminal.print(previewText(preview));
}

const uncounted =
  'What would be deleted cannot be counted for the whole store. To see it, use --agent (and --owner), or name a SQLite or file store with --store.';

function previewText({ report, sessions = [] }: Preview): string {
  if (isEmpty(report)) return 'Nothing to delete: no snapshot matches.';
  const rows = sessions.map(({ session, snapshots, dropped }) => [
    oneLine(session.sessionId, 64),
    dropped ? `all ${snapshots}` : String(snapshots),
    when(session.updatedAt),
    oneLine(session.title ?? ''),
  ]);
  const list =
    rows.length > 0 ? `\n${table([['SESSION', 'SNAPSHOTS', 'UPDATED', 'TITLE'], ...rows])}` : '';
  return `Would delete ${reportText(report)}.${list}`;
}

function isEmpty({ snapshots, sessions }: PruneReport): boolean {
  return snapshots === 0 && sessions === 0;
}

function reportText({ snapshots, sessions }: PruneReport): string {
  return `${count(snapshots, 'snapshot')} and ${count(sessions, 'session')}`;
}
