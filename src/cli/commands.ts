import { abort } from './commands/abort.ts';
import { backup } from './commands/backup.ts';
import { chat } from './commands/chat.ts';
import { dev } from './commands/dev.ts';
import { diff } from './commands/diff.ts';
import { erase } from './commands/erase.ts';
import { exportCommand } from './commands/export.ts';
import { importCommand } from './commands/import.ts';
import { init } from './commands/init.ts';
import { migrate } from './commands/migrate.ts';
import { prune } from './commands/prune.ts';
import { restore } from './commands/restore.ts';
import { retry } from './commands/retry.ts';
import { sessions } from './commands/sessions.ts';
import { show } from './commands/show.ts';
import { snapshots } from './commands/snapshots.ts';
import { verify } from './commands/verify.ts';
import { watch } from './commands/watch.ts';
import { worker } from './commands/worker.ts';
import type { CommandGroups } from './help.ts';

/** Every command, as the help lists them. A new one is a file of its own and a line here. */
export const groups: CommandGroups = [
  ['Start', [init, dev, chat]],
  ['Look', [sessions, snapshots, show, diff]],
  ['Background runs', [worker, watch, abort, retry]],
  ['Stores', [backup, restore, verify, prune, erase, exportCommand, importCommand, migrate]],
];
