import type { App } from '../../app.ts';
import { systemClock } from '../../core/time/clock.ts';
import { waitAtMost } from '../../core/time/timeout.ts';

/** Milliseconds that running turns get to finish when a command ends. */
const deadlineMs = 2_000;
/** Milliseconds after which a command ends whatever its store still does. */
const patienceMs = 6_000;

/** Closes the app of a command. One whose store is away, or hangs, does not keep the shell waiting. */
export async function closeApp(app: App): Promise<void> {
  await waitAtMost(systemClock, patienceMs, app.close({ deadlineMs }));
}
