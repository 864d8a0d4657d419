import { internalsOf } from '../../agent/define/create-agent.ts';
import { isName, notAName } from '../../protocol/ids.ts';
import { jsonResponse } from '../http/answer.ts';
import type { Caller } from '../http/auth.ts';
import { requireLoopback } from '../http/origin.ts';
import type { ServedApp } from '../http/served-app.ts';
import { authorize, type RequestContext, type Router } from '../http/server-context.ts';

/** Says whose sessions a request of Studio is about, percent-encoded. */
const ownerHeader = 'x-waymark-owner';

/**
 * `GET /studio/owners`: the owners that have sessions. Every later route reads the owner of its sessions from a header, for
 * clients on this machine only: the developer looks at the sessions of one user after the other.
 */
export function mountOwners(router: Router): void {
  router.use(async (c, next) => {
    const given = c.req.header(ownerHeader);
    if (given !== undefined) {
      requireLoopback(c);
      c.set('studioOwner', decodeOwner(given));
    }
    await next();
  });
  router.get('/studio/owners', async (c) => {
    await authorize(c, { caller: {}, operation: 'listAgents' });
    return jsonResponse(await listOwners(c.get('server').app));
  });
}

/** The caller of a route of Studio: the person at this machine, on behalf of the chosen owner. */
export function studioCaller(c: RequestContext): Caller {
  const owner = c.get('studioOwner');
  return owner === undefined ? {} : { principal: owner };
}

function decodeOwner(text: string): string {
  try {
    const owner = decodeURIComponent(text);
    if (isName(owner)) return owner;
  } catch {
    // Falls through: it is not percent-encoded.
  }
  throw notAName(text, 'owner');
}

/** More than a person chooses from; the id of any other owner can be typed. */
const maxOwners = 500;

async function listOwners(app: ServedApp): Promise<object> {
  const stores = new Set(
    app.agents().flatMap((agent) => internalsOf(agent).spec.store?.timeline ?? []),
  );
  const pages = await Promise.all(
    [...stores].map((timeline) => timeline.listOwners?.({ limit: maxOwners })),
  );
  const items = [...new Set(pages.flatMap((page) => page?.items ?? []))].sort();
  return { items, isMore: pages.some((page) => page?.next !== undefined) };
}
