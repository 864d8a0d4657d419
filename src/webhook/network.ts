import { WaymarkError } from '../core/error.ts';

/** Node's modules for connections whose address the caller chooses; `fetch` resolves names itself. */
export interface Network {
  readonly dns: typeof import('node:dns/promises');
  readonly http: typeof import('node:http');
  readonly https: typeof import('node:https');
  readonly net: typeof import('node:net');
}

/** Loads {@link Network}; UNIMPLEMENTED outside of Node. */
export function loadNetwork(): Network {
  // Neither the process nor a module is there on every platform.
  const process = globalThis.process as Partial<typeof globalThis.process> | undefined;
  const dns = process?.getBuiltinModule?.('node:dns/promises');
  const http = process?.getBuiltinModule?.('node:http');
  const https = process?.getBuiltinModule?.('node:https');
  const net = process?.getBuiltinModule?.('node:net');
  if (dns && http && https && net) return { dns, http, https, net };
  throw new WaymarkError('UNIMPLEMENTED', 'Webhooks can be sent only from Node, Bun and Deno.');
}
