import type { ReactNode } from 'react';
import type { RunInfo } from '../../../src/client/index.ts';
import { placeHash } from '../lib/place.ts';

/** From a run to the session it works on. */
export function SessionLink({
  run: { agent, sessionId },
}: {
  readonly run: Pick<RunInfo, 'agent' | 'sessionId'>;
}): ReactNode {
  return (
    <a className="run-name" href={placeHash({ view: 'chat', agent, session: sessionId })}>
      {agent}
      <span className="visually-hidden">: open its session</span>
    </a>
  );
}
