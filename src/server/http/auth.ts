import { markReported } from '../../agent/contract/error-reports.ts';
import { internalsOf } from '../../agent/define/create-agent.ts';
import { hasStatus, isWaymarkError, messageOf, WaymarkError } from '../../core/error.ts';
import { type JsonObject, toJson } from '../../core/json/json.ts';
import type { Clock } from '../../core/time.ts';
import { isName } from '../../protocol/ids.ts';
import type { Operation } from '../../protocol/routes.ts';
import { createRateLimit, type ServerLimits } from './limits.ts';
import type { ServedApp } from './served-app.ts';

/** Who is calling. */
interface Identity {
  /** The owner of the sessions that the client starts. It cannot see those of other owners. */
  readonly principal: string;
  /** Plain JSON, passed to tools and handlers as the call's context. It is stored with the run, so do not put secrets in it. */
  readonly context?: JsonObject;
}

/**
 * Tells who is calling. `undefined` refuses the request, and so does a `WaymarkError`, with its status. Any other error is a
 * failure of the server: it is reported to `onError`, and the client gets `INTERNAL`.
 */
export type Auth = (request: Request) => Identity | undefined | Promise<Identity | undefined>;

/** A caller; without a principal where the server has no `auth`. */
export interface Caller {
  /** The id of the caller, and the owner of its sessions. */
  readonly principal?: string;
  /** The `context` of tools and handlers. */
  readonly context?: JsonObject;
}

/** The owner under which a caller's sessions live. */
export function ownerOf({ principal }: Caller): { readonly owner?: string } {
  return principal === undefined ? {} : { owner: principal };
}

/** A call that `authorize` judges. */
export interface AuthorizeCall extends Caller {
  /**
   * The operation, under its name in the native protocol: a turn is `runTurn` in every protocol, including each turn over a
   * WebSocket; opening the WebSocket is `connect`. Development tools ask for `runAction`, and then for the operation that the action
   * performs.
   */
  readonly operation: Operation | 'runAction';
  /** The name of the agent. */
  readonly agent?: string;
  /** The session that the call is about, even if the call names only a snapshot. Absent for a new session without an id. */
  readonly sessionId?: string;
  /** The snapshot that the call names. */
  readonly snapshotId?: string;
  /** For `restore`: whether it also changes the files of a workspace, if the agent has one. */
  readonly workspace?: boolean;
  /** The key of the action, for `runAction`. */
  readonly action?: string;
  /** The HTTP request. */
  readonly request: Request;
}

async function authenticate(auth: Auth | undefined, request: Request): Promise<Caller> {
  if (!auth) return {};
  const identity = await auth(request);
  if (identity !== undefined) return identity;
  throw new WaymarkError(
    'UNAUTHENTICATED',
    'Authentication is required: the credentials are missing or not valid.',
  );
}

/** The identity that `auth` returned; INTERNAL if it is none. */
function parseIdentity(returned: unknown): Identity | undefined {
  if (returned === undefined || returned === null) return undefined;
  const { principal, context } = returned as Partial<Identity>;
  if (typeof principal === 'string' && isName(principal)) {
    if (context === undefined) return { principal };
    const what = 'The context that `auth` returned';
    return { principal, context: toJson(context, what) as JsonObject };
  }
  const what =
    typeof returned !== 'object'
      ? `a ${typeof returned}`
      : principal === undefined
        ? 'an object without `principal`'
        : 'a `principal` that is not a valid id';
  throw new WaymarkError(
    'INTERNAL',
    `\`auth\` returned ${what}. Return { principal }, with the id of the caller, or undefined to refuse the request.`,
  );
}

type Authorize = (call: AuthorizeCall) => boolean | undefined | Promise<boolean | undefined>;

interface Hooks {
  readonly auth?: Auth | undefined;
  readonly authorize?: Authorize | undefined;
}

/**
 * The hooks of a server. A `WaymarkError` that a hook throws is its answer; anything else is a failure of the hook, which is
 * reported to the app, and is INTERNAL for the client.
 */
export function guardHooks({ auth, authorize }: Hooks, app: ServedApp): Hooks {
  const guarded = async <Answer>(
    name: 'auth' | 'authorize',
    { signal }: Request,
    ask: () => Answer | Promise<Answer>,
  ): Promise<Answer> => {
    try {
      return await ask();
    } catch (thrown) {
      if (isWaymarkError(thrown) && thrown.status !== 'INTERNAL') throw thrown;
      if (!signal.aborted) throw reported(app, name, thrown);
      throw new WaymarkError('CANCELLED', 'The client has left.', { cause: thrown });
    }
  };
  return {
    auth:
      auth &&
      ((request) => guarded('auth', request, async () => parseIdentity(await auth(request)))),
    authorize: authorize && ((call) => guarded('authorize', call.request, () => authorize(call))),
  };
}

// The error for the client, after the owner of the app has got the original.
function reported(app: ServedApp, name: string, cause: unknown): WaymarkError {
  const error = new WaymarkError(
    'INTERNAL',
    `The \`${name}\` of the server failed: ${messageOf(cause)}`,
    { cause, publicMessage: 'An unexpected error occurred.' },
  );
  const [agent] = app.agents();
  // Without an agent there is no app to report to; the request is then logged as failed.
  if (agent !== undefined) {
    markReported(error);
    internalsOf(agent).host.report(cause, { phase: 'auth' });
  }
  return error;
}

/** Authenticates a request and counts it; `address` is where it comes from, if that is known. Without `auth`, it answers at once. */
export type Identify = (request: Request, address: string | undefined) => Caller | Promise<Caller>;

/** How many credentials that were accepted are remembered, and up to which length. */
const maxKnown = 1000;
const maxKnownLength = 4096;

/**
 * Authenticates through the `auth` hook. An address with too many failures in a minute is refused without asking the
 * hook, except for credentials that were accepted before: clients behind one proxy share an address, and one of them must
 * not lock out the others.
 */
export function createIdentify(
  { auth }: Pick<Hooks, 'auth'>,
  { limits, clock }: { readonly limits: ServerLimits; readonly clock: Clock },
): Identify {
  const rate = createRateLimit(limits.requestsPerMinute, clock);
  const failures = createRateLimit(limits.failedAuthPerMinute, clock, 'failed authentications');
  const known = new Set<string>();

  if (!auth) {
    return (_, address) => {
      rate.check(address ?? '');
      return {};
    };
  }

  const authenticated = async (request: Request, address: string | undefined): Promise<Caller> => {
    const credential = credentialOf(request);
    if (address !== undefined && !(credential && known.has(credential))) failures.look(address);
    try {
      const caller = await authenticate(auth, request);
      if (credential !== undefined) remember(known, credential);
      return caller;
    } catch (error) {
      if (credential !== undefined) known.delete(credential);
      if (address !== undefined && isRefusal(error)) failures.spend(address);
      throw error;
    }
  };

  return async (request, address) => {
    const caller = await authenticated(request, address);
    rate.check(caller.principal ?? address ?? '');
    return caller;
  };
}

// The newest are kept.
function remember(known: Set<string>, credential: string): void {
  if (known.has(credential)) return;
  known.add(credential);
  const [oldest] = known.size > maxKnown ? known : [];
  if (oldest !== undefined) known.delete(oldest);
}

function credentialOf({ headers }: Request): string | undefined {
  const credential = headers.get('authorization') ?? headers.get('cookie') ?? undefined;
  return credential && credential.length <= maxKnownLength ? credential : undefined;
}

/** Whether `auth` did not let a request through, because it refused or failed; what may pass, such as UNAVAILABLE, is no answer. */
function isRefusal(error: unknown): boolean {
  return hasStatus(error, 'UNAUTHENTICATED', 'PERMISSION_DENIED', 'INTERNAL');
}

/** A stream, a WebSocket or a call that is waited for. */
interface Visit {
  readonly caller: Caller;
  /** The request, with the credentials by which the caller was authenticated. */
  readonly request: Request;
  /** Ends it. */
  readonly end: (reason: WaymarkError) => void;
}

/** Who is connected, so that access can be taken away while a connection is open. */
export interface Presence {
  /** Adds a connection; the returned function removes it. */
  enter(visit: Visit): () => void;
  /** Ends the connections of a principal; gives their number. */
  disconnect(principal: string): number;
}

/** Keeps the open connections, and authenticates each again at the interval of `reauthenticate`. */
export function createPresence(
  { auth, reauthenticate }: Pick<Hooks, 'auth'> & { readonly reauthenticate?: number | undefined },
  clock: Clock,
): Presence {
  const visits = new Map<string, Set<Visit>>();

  const check = async ({ caller, request, end }: Visit): Promise<void> => {
    try {
      const { principal } = await authenticate(auth, request);
      if (principal !== caller.principal) end(revoked());
    } catch (error) {
      // Without an answer, it is asked again after the next interval.
      if (isRefusal(error)) end(revoked(error));
    }
  };

  return {
    enter(visit) {
      const { principal } = visit.caller;
      if (principal === undefined) return () => {};
      const mine = visits.get(principal) ?? new Set();
      visits.set(principal, mine.add(visit));
      const stop =
        auth && reauthenticate !== undefined
          ? clock.every(reauthenticate, () => void check(visit))
          : () => {};
      return () => {
        stop();
        mine.delete(visit);
        if (mine.size === 0 && visits.get(principal) === mine) visits.delete(principal);
      };
    },
    disconnect(principal) {
      const mine = [...(visits.get(principal) ?? [])];
      visits.delete(principal);
      for (const { end } of mine) end(revoked());
      return mine.length;
    },
  };
}

function revoked(cause?: unknown): WaymarkError {
  return new WaymarkError('UNAUTHENTICATED', 'Access was revoked. Authenticate again.', { cause });
}
