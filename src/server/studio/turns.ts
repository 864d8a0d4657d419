import { isWaymarkError, WaymarkError } from '../../core/error.ts';
import { jsonResponse } from '../http/json-response.ts';
import {
  checkCall,
  type RequestContext,
  type Router,
  type ServerContext,
} from '../http/server-context.ts';
import type { RecordedTurn } from './recorded-turns.ts';
import type { SpanRecorder } from './span-recorder.ts';

/** `GET /studio/turns`: the recorded turns of all sessions, the latest first. */
export function mountTurns(
  router: Router,
  serverContext: ServerContext,
  spans: Pick<SpanRecorder, 'turns'>,
): void {
  router.get('/studio/turns', async (c) => {
    const limit = limitOf(c.req.query('limit'));
    const found = spans.turns().filter(toFilter(c)).reverse();
    const items: RecordedTurn[] = [];
    const judged = new Map<string, boolean>();
    let isMore = false;
    for (const turn of found) {
      isMore = items.length === limit;
      if (isMore) break;
      const key = JSON.stringify([turn.sessionId, turn.owner]);
      const isAllowed = judged.get(key) ?? (await mayRead(c, serverContext, turn));
      judged.set(key, isAllowed);
      if (isAllowed) items.push(turn);
    }
    return jsonResponse({ items, isMore });
  });
}

const mostItems = 200;

function limitOf(text = String(mostItems)): number {
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= mostItems) return limit;
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    `limit must be a whole number from 1 to ${mostItems}.`,
  );
}

function toFilter(c: RequestContext): (turn: RecordedTurn) => boolean {
  const agent = c.req.query('agent');
  const words = c.req.query('query')?.trim().toLowerCase() ?? '';
  const isFailed = c.req.query('failed') === '1';
  const isDetached = c.req.query('detached') === '1';
  return (turn) =>
    (agent === undefined || turn.agent === agent) &&
    (!isFailed || turn.error !== undefined) &&
    (!isDetached || turn.mode === 'detached') &&
    `${turn.asked ?? ''} ${turn.error?.message ?? ''}`.toLowerCase().includes(words);
}

async function mayRead(
  c: RequestContext,
  serverContext: ServerContext,
  { sessionId, owner }: RecordedTurn,
): Promise<boolean> {
  try {
    const caller = owner === undefined ? {} : { principal: owner };
    const asked = { request: c.req.raw, caller, operation: 'getSession', sessionId } as const;
    await checkCall(serverContext, asked);
    return true;
  } catch (error) {
    if (isWaymarkError(error)) return false;
    throw error;
  }
}
