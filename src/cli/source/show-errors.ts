import { reportHeadline, reportText } from '../../agent/spec/error-reports.ts';
import type { App } from '../../app.ts';
import { messageOf } from '../../core/error.ts';
import { oneLine, safe } from '../text/safe.ts';

/**
 * Prints failures of a loaded app: with `--debug` all of them with their stacks, otherwise one line for those that the
 * command does not print itself.
 */
export function showErrors(app: App, note: (line: string) => void, isDebug: boolean): void {
  // An app of an older version of this package has no such method.
  app.subscribeToErrors?.((error, info) => {
    if (isDebug) note(safe(reportText(error, info)));
    else if (info.phase === 'hook' || info.phase === 'run') {
      note(safe(`${reportHeadline(info)}: ${oneLine(messageOf(error), 200)}`));
    }
  });
}
