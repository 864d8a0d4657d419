import { metrics } from '@opentelemetry/api';
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { serve } from '../../src/server/index.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { detached, openQueueApp } from './support/agents.ts';

/** Reads when it is told to. */
class Reader extends MetricReader {
  protected override async onForceFlush(): Promise<void> {}
  protected override async onShutdown(): Promise<void> {}
}

const reader = new Reader();
const provider = new MeterProvider({ readers: [reader] });
let postgres: TestPostgres;

beforeAll(async () => {
  metrics.setGlobalMeterProvider(provider);
  postgres = await startPostgres();
});
afterAll(async () => {
  metrics.disable();
  await provider.shutdown();
  await postgres.stop();
});

/** What OpenTelemetry's own SDK collects, by name. */
async function collect(): Promise<Record<string, unknown>> {
  const { resourceMetrics } = await reader.collect();
  const found = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
  return Object.fromEntries(
    found.map(({ descriptor, dataPoints }) => [descriptor.name, dataPoints[0]?.value]),
  );
}

test('a full queue answers 429 with Retry-After, and says how full it is and since when', async () => {
  const { connectionString } = postgres;
  const server = openQueueApp({ connectionString, work: false, engine: { maxWaiting: 2 } });
  await server.app.ready();
  const served = await serve(server.app, { port: 0, log: () => {} });
  const turn = (): Promise<Response> =>
    fetch(`${served.url}/agents/echo/turns`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ input: detached('x') }),
    });
  const accepted = [await turn(), await turn()];
  expect(accepted.map(({ status }) => status)).toEqual([200, 200]);
  const refused = await turn();
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '5']);
  expect(await refused.json()).toMatchObject({
    status: 'RESOURCE_EXHAUSTED',
    details: { retryAfter: 5, waiting: 2 },
  });

  const health = async () => (await fetch(`${served.url}/healthz`)).json();
  const engine = { engine: 'pg-boss', running: 0, waiting: 2, oldestMs: expect.any(Number) };
  expect(await health()).toMatchObject({ status: 'ok', engine });
  const before = await collect();
  expect(before).toMatchObject({ 'waymark.queue.waiting': 2 });
  await new Promise((resolve) => setTimeout(resolve, 50));
  const after = await collect();
  expect(after['waymark.queue.oldest']).toBeGreaterThan(Number(before['waymark.queue.oldest']));

  // Somebody who waits for their answer is never refused because of the queue.
  const attached = await server.app.agent('echo').runText('hello');
  expect(attached.finishReason).toBe('stop');

  const worker = openQueueApp({ connectionString });
  await expect.poll(health).toMatchObject({ engine: { waiting: 0, oldestMs: 0 } });
  expect(await collect()).toMatchObject({ 'waymark.queue.waiting': 0, 'waymark.queue.oldest': 0 });
  expect((await turn()).status).toBe(200);
  await worker.close();
  await served.close();
  await server.close();
});
