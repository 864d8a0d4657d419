import type { LookupAddress } from 'node:dns';
import type { ClientRequest } from 'node:http';
import { isWaymarkError, messageOf } from '../core/error.ts';
import { loadNetwork } from '../core/platform.ts';
import {
  type DestinationRules,
  parseDestination,
  type Resolve,
  resolveDestination,
} from './destination.ts';

/** One request. */
export interface PostRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly signal: AbortSignal;
}

export interface PostOptions extends DestinationRules {
  /** Milliseconds for the whole request. */
  readonly timeout: number;
  /** @default the resolver of the system */
  readonly resolve?: Resolve;
}

/** What came of one attempt. With `isFinal` another one would end alike. */
export type PostResult =
  | { readonly status: number }
  | { readonly error: string; readonly isFinal: boolean };

const longestResponse = 65_536;

/** Posts a body to an address that the rules allow. Follows no redirect and never rejects. */
export async function post(request: PostRequest, options: PostOptions): Promise<PostResult> {
  try {
    const network = loadNetwork('Webhooks');
    const url = parseDestination(request.url, options);
    const address = await resolveDestination(url, options, network, options.resolve);
    const { request: open } = url.protocol === 'https:' ? network.https : network.http;
    const signal = AbortSignal.any([request.signal, AbortSignal.timeout(options.timeout)]);
    const sent = open(url, {
      method: 'POST',
      headers: { ...request.headers, 'content-length': String(new Blob([request.body]).size) },
      lookup: pinned(address),
      // A new connection: one that is kept open could lead elsewhere.
      agent: false,
      signal,
    });
    const status = await answerOf(sent, request.body);
    if (status >= 200 && status < 300) return { status };
    const isFinal = status === 410 || (status >= 300 && status < 400);
    return { error: `The receiver answered ${status}.`, isFinal };
  } catch (error) {
    return { error: messageOf(error), isFinal: isWaymarkError(error) };
  }
}

/** The status of the response, as soon as its body has ended or is longer than anyone reads. */
function answerOf(request: ClientRequest, body: string): Promise<number> {
  return new Promise((resolve, reject) => {
    request.once('error', reject);
    request.once('response', (response) => {
      const done = (): void => {
        resolve(response.statusCode ?? 0);
        request.destroy();
      };
      let read = 0;
      response.on('data', (data: Uint8Array) => {
        read += data.length;
        if (read > longestResponse) done();
      });
      response.once('end', done);
      response.once('error', reject);
    });
    request.end(body);
  });
}

type Lookup = (
  hostname: string,
  options: { readonly all?: boolean | undefined },
  callback: (error: null, address: string | LookupAddress[], family?: number) => void,
) => void;

function pinned({ address, family }: LookupAddress): Lookup {
  return (_hostname, { all }, callback) => {
    if (all === true) callback(null, [{ address, family }]);
    else callback(null, address, family);
  };
}
