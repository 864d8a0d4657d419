import type { ReactNode } from 'react';
import { placeHash } from '../lib/place.ts';
import type { RecordedTurn } from '../lib/recorded-turns.ts';

/** From a recorded turn to its place in the session, named by what was asked. */
export function TurnLink({
  turn: { agent, sessionId, owner, snapshotId, turnIndex, asked },
}: {
  readonly turn: RecordedTurn;
}): ReactNode {
  return (
    <a
      className="turn-link"
      dir="auto"
      href={placeHash({
        view: 'chat',
        agent,
        session: sessionId,
        owner,
        ...(snapshotId !== undefined && { snapshot: snapshotId }),
      })}
    >
      {asked ?? `Turn ${turnIndex + 1}`}
    </a>
  );
}
