import type { SessionOf } from '../../../src/client/index.ts';
import { useAgent } from '../../../src/react/index.ts';
import type { TestApp } from '../../client/support/served.ts';

type Types = NonNullable<TestApp['chat']['~types']>;

/** A session that a server has read, and a page goes on with. */
export function SessionView({ url, initial }: { url: string; initial?: SessionOf<Types> }) {
  const { phase, messages, send } = useAgent<TestApp['chat']>({
    url,
    agent: 'chat',
    ...(initial ? { initial } : { sessionId: 'not-read-yet' }),
  });
  return (
    <main data-phase={phase}>
      <p>{messages.map(({ role }) => role).join(' ')}</p>
      <button type="button" onClick={() => send('say more')}>
        Send
      </button>
    </main>
  );
}
