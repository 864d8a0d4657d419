import { isWaymarkError, WaymarkError } from '../../core/error.ts';
import { jsonResponse, readLimit, safetyHeaders } from '../http/answer.ts';
import { requireLoopback } from '../http/origin.ts';
import { authorize, type RequestContext, type Router } from '../http/server-context.ts';
import { mountRerun, mountTools, type Rerun } from './actions.ts';
import type { StudioFile } from './files.ts';
import { mountOwners, studioCaller } from './owners.ts';
import type { RecordedTurn, SpanRecorder } from './span-recorder.ts';

/** Adds the studio to a router. A function, so that only servers with a studio load it. */
export type MountStudio = (router: Router) => void;

interface Studio {
  readonly files: ReadonlyMap<string, StudioFile>;
  /** The views and actions of a single developer; absent where the server has several principals. */
  readonly developer?: { readonly spans: SpanRecorder; readonly rerun: Rerun };
}

// Nothing from elsewhere, nothing inline: what an agent says can load nothing and run nothing.
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  'media-src data: blob:',
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const safety = { ...safetyHeaders, 'content-security-policy': policy };

/** The studio under `/studio/`, for browsers on this machine only; a browser that asks for `/` is led there. */
export function mountStudio(router: Router, { files, developer }: Studio): void {
  const isLocal = async (c: RequestContext, next: () => Promise<void>): Promise<void> => {
    requireLoopback(c);
    await next();
  };
  router.use('/studio', isLocal);
  router.use('/studio/*', isLocal);

  router.get('/', async (c, next) => {
    if (!c.req.header('accept')?.includes('text/html')) return next();
    return c.redirect('/studio/');
  });
  router.get('/studio', (c) => c.redirect('/studio/'));

  if (developer) {
    const { spans, rerun } = developer;
    mountOwners(router);
    type Session = readonly [sessionId: string, owner: string | undefined];
    const checkedSession = async (c: RequestContext): Promise<Session> => {
      const sessionId = c.req.query('session') ?? '';
      const caller = studioCaller(c);
      await authorize(c, { caller, operation: 'getSession', sessionId });
      return [sessionId, caller.principal];
    };
    router.get('/studio/traces', async (c) =>
      jsonResponse({ items: spans.ofSession(...(await checkedSession(c))) }),
    );
    router.get('/studio/calls', async (c) => {
      const content = spans.contentOf(...(await checkedSession(c)), c.req.query('span') ?? '');
      if (content === undefined) {
        throw new WaymarkError('NOT_FOUND', 'This model call is not recorded, or no longer.');
      }
      return jsonResponse({ content: JSON.parse(content) });
    });
    mountTurns(router, spans);
    mountRerun(router, rerun);
    mountTools(router);
  }
  router.get('/studio/*', async (c, next) => {
    const name = c.req.path.slice('/studio/'.length) || 'index.html';
    const file = files.get(name);
    return file ? answerFile(c, name, file) : next();
  });
}

function answerFile(c: RequestContext, name: string, { body, type, etag }: StudioFile): Response {
  // The names of assets change with their content.
  const cache = name.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'no-cache';
  const headers = { ...safety, etag, 'cache-control': cache, 'content-type': type };
  // Compression makes the tag a weak one, `W/"…"`.
  if (c.req.header('if-none-match')?.includes(etag))
    return new Response(null, { status: 304, headers });
  return new Response(body, { headers });
}

/** `GET /studio/turns`: the recorded turns of all sessions, the latest first. */
function mountTurns(router: Router, spans: Pick<SpanRecorder, 'turns'>): void {
  router.get('/studio/turns', async (c) => {
    const limit = readLimit(c.req.query('limit'), maxItems) ?? maxItems;
    const found = spans.turns().filter(toFilter(c)).reverse();
    const items: RecordedTurn[] = [];
    const judged = new Map<string, boolean>();
    let isMore = false;
    for (const turn of found) {
      isMore = items.length === limit;
      if (isMore) break;
      const key = JSON.stringify([turn.sessionId, turn.owner]);
      const isAllowed = judged.get(key) ?? (await mayRead(c, turn));
      judged.set(key, isAllowed);
      if (isAllowed) items.push(turn);
    }
    return jsonResponse({ items, isMore });
  });
}

const maxItems = 200;

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

async function mayRead(c: RequestContext, { sessionId, owner }: RecordedTurn): Promise<boolean> {
  try {
    const caller = owner === undefined ? {} : { principal: owner };
    await authorize(c, { caller, operation: 'getSession', sessionId });
    return true;
  } catch (error) {
    if (isWaymarkError(error)) return false;
    throw error;
  }
}
