import { currentProbe } from './probe.ts';

/** Methods that have no effect. */
const harmless = /^(GET|HEAD|OPTIONS|TRACE)$/i;

interface Channels {
  subscribe(name: string, listener: (message: unknown) => void): void;
  unsubscribe(name: string, listener: (message: unknown) => void): void;
}

/** Notes the HTTP requests of simulated processes, which Node announces to subscribers. Returns a function that stops it. */
export function watchNetwork(): () => void {
  const channels = globalThis.process?.getBuiltinModule?.('node:diagnostics_channel') as
    | Channels
    | undefined;
  const listeners = [
    ['undici:request:create', onFetch],
    ['http.client.request.start', onRequest],
  ] as const;
  for (const [name, listener] of listeners) channels?.subscribe(name, listener);
  return () => {
    for (const [name, listener] of listeners) channels?.unsubscribe(name, listener);
  };
}

function onFetch(message: unknown): void {
  const { request } = message as {
    readonly request: { method: string; origin: unknown; path: string; headers: unknown };
  };
  const { method, origin, path, headers } = request;
  const list = Array.isArray(headers) ? headers.map(String) : String(headers).split(/: |\r\n/);
  const at = list.findIndex((name) => name.toLowerCase() === keyHeader);
  note(method, `${String(origin)}${path}`, at < 0 ? undefined : list[at + 1]);
}

function onRequest(message: unknown): void {
  const { request } = message as {
    readonly request: {
      method: string;
      protocol: string;
      host: string;
      path: string;
      getHeader(name: string): unknown;
    };
  };
  const { method, protocol, host, path } = request;
  const key = request.getHeader(keyHeader);
  note(method, `${protocol}//${host}${path}`, key === undefined ? undefined : String(key));
}

const keyHeader = 'idempotency-key';

function note(method: string, url: string, key: string | undefined): void {
  if (harmless.test(method)) return;
  // The query may have secrets.
  const name = `${method} ${url.replace(/\?.*/, '')}`;
  currentProbe()?.request(name, key === undefined ? undefined : `${name} ${key}`);
}
