import type { App } from '../../app.ts';
import { systemClock } from '../../core/time/clock.ts';
import { waitAtMost } from '../../core/time/timeout.ts';

/** How long running turns may take to finish when a command ends. */
const grace = 2_000;
/** How long closing may take altogether, in milliseconds. */
const timeoutMs = 6_000;

/** Closes the app of a command. A store that hangs or cannot be reached does not keep the shell waiting. */
export async function closeApp(app: App): Promise<void> {
  await waitAtMost(systemClock, timeoutMs, app.close({ grace }));
}
