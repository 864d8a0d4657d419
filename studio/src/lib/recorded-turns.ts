import { useEffect, useState } from 'react';
import type { Input, RunMode } from '../../../src/client/index.ts';
import { pulse } from './pulse.ts';
import { serverUrl, studioHeaders } from './server.ts';
import type { SpanError } from './traces.ts';
import { useSource } from './use-source.ts';

/** A turn as the development server recorded it. Times are milliseconds since the epoch. */
export interface RecordedTurn {
  readonly spanId: string;
  readonly agent: string;
  readonly sessionId: string;
  readonly owner?: string;
  readonly snapshotId?: string;
  readonly turnIndex: number;
  readonly startedAt: number;
  /** Absent while it runs. */
  readonly endedAt?: number;
  readonly models: readonly string[];
  readonly modelCalls: number;
  readonly toolCalls: number;
  readonly tokens: number;
  readonly cost?: Readonly<Record<string, number>>;
  readonly error?: SpanError;
  /** The rest is absent in a turn whose process died. */
  readonly asked?: string;
  /** Whether its input can be sent again. */
  readonly hasInput?: boolean;
  readonly attempt?: number;
  readonly mode?: RunMode;
  /** `stopped`: it was aborted. `lost`: aborted in the background, or taken over by another worker. */
  readonly outcome?: string;
}

/** Which turns to list. */
export interface TurnFilter {
  readonly agent?: string | undefined;
  readonly query?: string;
  readonly failed?: boolean;
  readonly detached?: boolean;
}

/** Turns of all sessions, the latest first. */
export interface RecordedTurns {
  readonly items: readonly RecordedTurn[];
  readonly isMore: boolean;
}

/** The latest recorded turns, kept up to date; `none` where the server records nothing, `undefined` until it is known. */
export function useRecordedTurns(filter: TurnFilter): RecordedTurns | 'none' | undefined {
  const { beat } = useSource(pulse);
  const [read, setRead] = useState<RecordedTurns | 'none'>();
  const search = toSearch(filter);
  // biome-ignore lint/correctness/useExhaustiveDependencies: every beat is a reason to look again
  useEffect(() => {
    let isCurrent = true;
    readTurns(search).then(
      (turns) => isCurrent && setRead(turns),
      () => {},
    );
    return () => {
      isCurrent = false;
    };
  }, [search, beat]);
  return read;
}

function toSearch({ agent, query = '', failed = false, detached = false }: TurnFilter): string {
  const search = new URLSearchParams({
    limit: '100',
    ...(agent !== undefined && { agent }),
    ...(query !== '' && { query }),
    ...(failed && { failed: '1' }),
    ...(detached && { detached: '1' }),
  });
  return String(search);
}

async function readTurns(search: string): Promise<RecordedTurns | 'none'> {
  const response = await fetch(`${serverUrl}/studio/turns?${search}`, { headers: studioHeaders() });
  if (response.status === 404) return 'none';
  if (!response.ok) throw new Error(`The server answered ${response.status}.`);
  return await response.json();
}

/** The input of a turn: all of it, and the snapshot that it continued from. */
export interface TurnInput {
  readonly input: Input;
  readonly from?: string;
}

/** Reads the input of a recorded turn. */
export async function readTurnInput(turn: RecordedTurn): Promise<TurnInput> {
  const query = new URLSearchParams({ session: turn.sessionId, span: turn.spanId });
  const headers = studioHeaders({ owner: turn.owner });
  const response = await fetch(`${serverUrl}/studio/calls?${query}`, { headers });
  if (!response.ok) throw new Error('Its input is no longer recorded.');
  const { content } = await response.json();
  return content;
}
