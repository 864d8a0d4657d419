import type { Transport } from './transport.ts';

/** Watches a line on which something should come now and then, if only a sign of life. */
export interface IdleTimeout {
  /** Something came. */
  heard(): void;
  /** Stops watching. */
  end(): void;
}

/** Calls `onSilence` when nothing has come for as long as the client was told to wait. */
export function createIdleTimeout(
  { clock, reconnect: { idleTimeout } }: Pick<Transport, 'clock' | 'reconnect'>,
  onSilence: () => void,
): IdleTimeout {
  let last = clock.now();
  let looks = 0;
  // One timer that looks now and then, not one for each piece that arrives. It also counts its looks: a clock that was set
  // back would hide a dead line.
  const end = clock.every(Math.max(idleTimeout / 4, 1), () => {
    if (++looks <= 4 && clock.now() - last <= idleTimeout) return;
    end();
    onSilence();
  });
  return {
    heard() {
      last = clock.now();
      looks = 0;
    },
    end,
  };
}
