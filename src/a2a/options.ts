import { invalid } from '../core/error.ts';
import { defined } from '../core/json/json.ts';
import { checkOptions, type OptionNames } from '../core/options.ts';
import { type Clock, systemClock } from '../core/time.ts';

/** Headers of requests to a remote agent. */
type A2aHeaders = Readonly<Record<string, string>>;

/** Options of a tool that asks a remote agent. */
export interface A2aAgentToolOptions {
  /** The name of the tool for the model. */
  readonly name: string;
  /** Tells the model what the remote agent does and when to ask it. */
  readonly description: string;
  /** Headers for each request, or a function that returns them, such as one that refreshes a token. */
  readonly headers?: A2aHeaders | (() => A2aHeaders | Promise<A2aHeaders>);
  /** Where the agent answers, if its card names an address on another host. @default what the card says */
  readonly endpoint?: string;
  /** Milliseconds for the whole task. @default 1800000 */
  readonly timeout?: number;
  /** Milliseconds for one request. @default 30000 */
  readonly requestTimeout?: number;
  /** Maximum size of one response or event in bytes. @default 10485760 */
  readonly maxMessageBytes?: number;
  /** @default the global one */
  readonly fetch?: typeof fetch;
  /** @default the system's */
  readonly clock?: Clock;
}

export type ResolvedOptions = Required<Omit<A2aAgentToolOptions, 'endpoint'>> &
  Pick<A2aAgentToolOptions, 'endpoint'> & { readonly url: URL };

const optionNames: OptionNames<A2aAgentToolOptions> = {
  name: true,
  description: true,
  headers: true,
  endpoint: true,
  timeout: true,
  requestTimeout: true,
  maxMessageBytes: true,
  fetch: true,
  clock: true,
};

export function resolveOptions(url: string | URL, options: A2aAgentToolOptions): ResolvedOptions {
  checkOptions(options, optionNames, 'a2aAgentTool()');
  const parsed = URL.parse(String(url));
  if (!parsed || !/^https?:$/.test(parsed.protocol)) {
    throw invalid(
      `a2aAgentTool() needs the http(s) URL of an agent or of its card, not "${String(url).slice(0, 200)}".`,
    );
  }
  return {
    headers: {},
    timeout: 30 * 60_000,
    requestTimeout: 30_000,
    maxMessageBytes: 10_485_760,
    fetch: globalThis.fetch,
    clock: systemClock,
    ...defined(options),
    url: parsed,
  };
}
