import { acp } from './commands/acp.ts';
import { backup, migrate, restoreBackup } from './commands/backup.ts';
import { fork, label, rename, restore } from './commands/change-sessions.ts';
import { chat } from './commands/chat.ts';
import { crashTest } from './commands/crash-test.ts';
import { dev } from './commands/dev.ts';
import { diff } from './commands/diff.ts';
import { erase } from './commands/erase.ts';
import { exportCommand, importCommand } from './commands/export-import.ts';
import { checkout, files } from './commands/files.ts';
import { init } from './commands/init.ts';
import { mcp } from './commands/mcp.ts';
import { memory } from './commands/memory.ts';
import { prune } from './commands/prune.ts';
import { replay } from './commands/replay.ts';
import { abort, retry, runs } from './commands/runs.ts';
import { schedules } from './commands/schedules.ts';
import { serve } from './commands/serve.ts';
import { interrupts, sessions, snapshots } from './commands/sessions.ts';
import { show } from './commands/show.ts';
import { skills } from './commands/skills.ts';
import { usage } from './commands/usage.ts';
import { verify } from './commands/verify.ts';
import { watch } from './commands/watch.ts';
import { worker } from './commands/worker.ts';
import type { CommandGroups } from './help.ts';

/** Every command, in the order of the help. To add one, write a file and add it here. */
export const groups: CommandGroups = [
  ['Develop', [init, dev, chat, skills, replay, crashTest]],
  ['Production', [serve, worker, mcp, acp]],
  [
    'Sessions',
    [
      sessions,
      snapshots,
      show,
      diff,
      files,
      checkout,
      restore,
      fork,
      label,
      rename,
      memory,
      interrupts,
    ],
  ],
  ['Runs', [runs, watch, abort, retry, schedules, usage]],
  ['Stores', [backup, restoreBackup, verify, prune, erase, exportCommand, importCommand, migrate]],
];
