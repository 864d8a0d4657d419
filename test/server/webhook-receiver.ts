import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { verifyWebhook } from '../../src/index.ts';
import { receiverSecrets } from '../../src/webhook/sign.ts';
import { testWebhooks } from './kit.ts';

/** A webhook whose signature was right. */
export interface Received {
  readonly id: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
  readonly body: any;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** A receiver of webhooks of an owner; one that is not genuine is answered with 401. */
export async function receiveWebhooks(owner?: string): Promise<{
  readonly url: string;
  readonly got: readonly Received[];
  close(): void;
}> {
  const got: Received[] = [];
  const server = createServer((request, respond) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text) => {
      body += text;
    });
    request.on('end', () => {
      try {
        const url = `http://${request.headers.host}${request.url}`;
        const secret = receiverSecrets(testWebhooks.secret, { url, owner });
        // The processes of a test may have a clock that is ahead.
        const { id } = verifyWebhook(body, request.headers, { secret, tolerance: 86_400_000 });
        got.push({ id, body: JSON.parse(body), headers: request.headers });
        respond.end();
      } catch {
        respond.writeHead(401).end();
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hook`,
    got,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
