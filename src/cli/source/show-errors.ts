import { reportHeadline, reportText } from '../../agent/spec/error-reports.ts';
import type { App } from '../../app.ts';
import { messageOf } from '../../core/error.ts';
import { oneLine, safe } from '../text/safe.ts';

/**
 * Shows what fails in a loaded app. With `--debug` all of it, with stacks; otherwise only what the command does not show
 * itself, in a line.
 */
export function showErrors(app: App, note: (line: string) => void, isDebug: boolean): void {
  // An app of an older version of this package cannot be listened to; it prints nothing itself.
  app.subscribeToErrors?.((error, info) => {
    if (isDebug) note(safe(reportText(error, info)));
    else if (info.phase === 'hook' || info.phase === 'run') {
      note(safe(`${reportHeadline(info)}: ${oneLine(messageOf(error), 200)}`));
    }
  });
}
