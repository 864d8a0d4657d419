import type { SessionInfo } from '../../protocol/session.ts';
import { oneLine } from './safe.ts';
import type { Style } from './style.ts';
import { table } from './table.ts';
import { when } from './when.ts';

/** Sessions as a table. */
export function sessionTable(items: readonly SessionInfo[], style: Style): string {
  return table([
    ['SESSION', 'AGENT', 'TURNS', 'UPDATED', 'TITLE'],
    ...items.map(({ sessionId, agent, turnCount, updatedAt, title, running }) => [
      oneLine(sessionId, 64),
      agent,
      String(turnCount),
      when(updatedAt),
      [oneLine(title ?? ''), running === undefined ? '' : style.warn(`◐ running ${running}`)]
        .filter(Boolean)
        .join('  '),
    ]),
  ]);
}
