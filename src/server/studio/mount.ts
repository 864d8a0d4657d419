import { jsonResponse } from '../http/json-response.ts';
import { requireLoopback } from '../http/require-loopback.ts';
import { safetyHeaders } from '../http/safety-headers.ts';
import {
  checkCall,
  type RequestContext,
  type Router,
  type ServerContext,
} from '../http/server-context.ts';
import type { StudioFile } from './files.ts';
import type { SpanRecorder } from './span-recorder.ts';

/** The studio of one server. */
export interface Studio {
  readonly files: ReadonlyMap<string, StudioFile>;
  /** What the trace view shows; absent where the server has several principals, whose spans must not mix. */
  readonly spans?: SpanRecorder;
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
export function mountStudio(
  router: Router,
  serverContext: ServerContext,
  { files, spans }: Studio,
): void {
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

  if (spans) {
    router.get('/studio/traces', async (c) => {
      const sessionId = c.req.query('session') ?? '';
      const asked = { request: c.req.raw, caller: {}, operation: 'getSession', sessionId } as const;
      await checkCall(serverContext, asked);
      return jsonResponse({ items: spans.ofSession(sessionId) });
    });
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
