import { useMemo, useRef } from 'react';
import type { Message } from '../../../src/client/index.ts';
import { type TurnGroup, toTurns } from './turns.ts';

/** A conversation turn by turn; while the last one streams in, the others stay the same objects. */
export function useTurns(messages: readonly Message[], from: number): readonly TurnGroup[] {
  const before = useRef<readonly TurnGroup[]>([]);
  return useMemo(() => {
    before.current = toTurns(messages, before.current, from);
    return before.current;
  }, [messages, from]);
}
