import { abort } from './commands/abort.ts';
import { backup } from './commands/backup.ts';
import { chat } from './commands/chat.ts';
import { dev } from './commands/dev.ts';
import { diff } from './commands/diff.ts';
import { erase } from './commands/erase.ts';
import { exportCommand } from './commands/export.ts';
import { fork } from './commands/fork.ts';
import { importCommand } from './commands/import.ts';
import { init } from './commands/init.ts';
import { interrupts } from './commands/interrupts.ts';
import { label } from './commands/label.ts';
import { mcp } from './commands/mcp.ts';
import { migrate } from './commands/migrate.ts';
import { prune } from './commands/prune.ts';
import { rename } from './commands/rename.ts';
import { replay } from './commands/replay.ts';
import { restore } from './commands/restore.ts';
import { restoreBackup } from './commands/restore-backup.ts';
import { retry } from './commands/retry.ts';
import { runs } from './commands/runs.ts';
import { serve } from './commands/serve.ts';
import { sessions } from './commands/sessions.ts';
import { show } from './commands/show.ts';
import { snapshots } from './commands/snapshots.ts';
import { usage } from './commands/usage.ts';
import { verify } from './commands/verify.ts';
import { watch } from './commands/watch.ts';
import { worker } from './commands/worker.ts';
import type { CommandGroups } from './help.ts';

/** Every command, in the order of the help. To add one, write a file and add it here. */
export const groups: CommandGroups = [
  ['Develop', [init, dev, chat, replay]],
  ['Production', [serve, worker, mcp]],
  ['Sessions', [sessions, snapshots, show, diff, restore, fork, label, rename, interrupts]],
  ['Runs', [runs, watch, abort, retry, usage]],
  ['Stores', [backup, restoreBackup, verify, prune, erase, exportCommand, importCommand, migrate]],
];
