import type { App } from '../../app.ts';
import { systemClock } from '../../core/time/clock.ts';
import { waitAtMost } from '../../core/time/timers.ts';

/** How long running turns may take to finish when a command ends. */
const defaultGrace = 2_000;
/** How long closing may take after that, in milliseconds. */
const timeoutMs = 4_000;

/** Closes the app of a command. A store that hangs or cannot be reached does not keep the shell waiting. */
export async function closeApp(app: App, grace = defaultGrace): Promise<void> {
  await waitAtMost(systemClock, grace + timeoutMs, app.close({ grace }));
}
