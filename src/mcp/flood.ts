import type { Transport } from '@modelcontextprotocol/client';

const mostPerSecond = 2_000;

/**
 * Ends the connection of a server that sends more notifications than a client can read. What it sends after that is
 * dropped unread. Call it on a connected transport.
 */
export function limitNotifications(transport: Transport, end: (reason: string) => void): void {
  const receive = transport.onmessage;
  let since = performance.now();
  let count = 0;
  let isEnded = false;
  transport.onmessage = (message, extra) => {
    if (isEnded) return;
    if ('method' in message && !('id' in message)) {
      const now = performance.now();
      if (now - since > 1_000) {
        since = now;
        count = 0;
      }
      count += 1;
      if (count > mostPerSecond) {
        isEnded = true;
        end(`sent more than ${mostPerSecond} notifications in a second`);
        return;
      }
    }
    receive?.(message, extra);
  };
}
