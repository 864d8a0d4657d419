import type { ReactNode } from 'react';
import { pulse } from '../lib/pulse.ts';
import { serverUrl } from '../lib/server.ts';
import { useSource } from '../lib/use-source.ts';
import { Icon } from '../ui/icon.tsx';

/** Says that the server is away, and that nothing needs to be done but to start it. */
export function OfflineBar(): ReactNode {
  const { online } = useSource(pulse);
  if (online !== false) return null;
  return (
    <p className="offline-bar" role="alert">
      <Icon name="warning" />
      <span>
        The server at <code>{serverUrl}</code> is not answering. Start it again; this page
        reconnects by itself.
      </span>
    </p>
  );
}
