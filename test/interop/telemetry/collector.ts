/** An OTLP collector on loopback that keeps what it gets, whatever the path. */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import protobuf from 'protobufjs';

/** The part of OTLP's trace messages that the tests read. */
const { root } = protobuf.parse(`
  syntax = "proto3";
  message TracesData { repeated ResourceSpans resourceSpans = 1; }
  message ResourceSpans { repeated ScopeSpans scopeSpans = 2; }
  message ScopeSpans { Scope scope = 1; repeated Span spans = 2; }
  message Scope { string name = 1; }
  message Span {
    bytes traceId = 1; bytes spanId = 2; bytes parentSpanId = 4; string name = 5; int32 kind = 6;
    repeated KeyValue attributes = 9; Status status = 15;
  }
  message Status { string message = 2; int32 code = 3; }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message AnyValue {
    oneof value { string stringValue = 1; bool boolValue = 2; int64 intValue = 3; double doubleValue = 4; ArrayValue arrayValue = 5; }
  }
  message ArrayValue { repeated AnyValue values = 1; }
`);

interface AnyValue {
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly intValue?: number | string;
  readonly doubleValue?: number;
  readonly arrayValue?: { readonly values: readonly AnyValue[] };
}
type KeyValues = readonly { readonly key: string; readonly value: AnyValue }[];

interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly attributes: KeyValues;
  readonly status: { readonly code?: number; readonly message?: string };
}

interface OtlpMetric {
  readonly name: string;
  readonly unit: string;
  readonly histogram?: { readonly dataPoints: readonly DataPoint[] };
  readonly sum?: { readonly dataPoints: readonly DataPoint[] };
}
interface DataPoint {
  readonly attributes: KeyValues;
  readonly explicitBounds?: readonly number[];
}

/** A span as the collector has got it. */
export interface CollectedSpan {
  readonly name: string;
  /** The name of the span above it. */
  readonly parent: string | undefined;
  readonly traceId: string;
  /** As in OTLP: 1 internal, 3 client. */
  readonly kind: number;
  /** As in OTLP: 0 unset, 1 ok, 2 error. */
  readonly status: number;
  readonly attributes: Readonly<Record<string, unknown>>;
}

/** A metric as the collector has got it. */
export interface CollectedMetric {
  readonly name: string;
  readonly unit: string;
  readonly bounds: readonly number[] | undefined;
  /** The labels of each of its points. */
  readonly labels: readonly Readonly<Record<string, unknown>>[];
}

interface Received {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  // biome-ignore lint/suspicious/noExplicitAny: decoded from what a third party sent
  readonly body: any;
}

export interface Collector extends AsyncDisposable {
  readonly url: string;
  readonly received: readonly Received[];
  spans(): readonly CollectedSpan[];
  metrics(): readonly CollectedMetric[];
}

export async function openCollector(): Promise<Collector> {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const bytes = Buffer.concat(chunks);
    const { headers, url = '' } = request;
    received.push({ path: url, headers, body: decode(bytes, headers) });
    response.setHeader('content-type', headers['content-type'] ?? 'application/json');
    response.end(headers['content-type'] === 'application/json' ? '{}' : undefined);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    received,
    spans: () => collectedSpans(received),
    metrics: () => collectedMetrics(received),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

function decode(sent: Buffer, headers: IncomingMessage['headers']): unknown {
  const bytes = headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent;
  if (headers['content-type'] === 'application/json') return JSON.parse(bytes.toString());
  const type = root.lookupType('TracesData');
  return type.toObject(type.decode(bytes), { longs: Number, bytes: String });
}

function collectedSpans(received: readonly Received[]): CollectedSpan[] {
  const all: OtlpSpan[] = received
    .flatMap(({ body }) => body.resourceSpans ?? [])
    .flatMap(({ scopeSpans }) => scopeSpans)
    .filter(({ scope }) => scope.name === 'waymark')
    .flatMap(({ spans }) => spans);
  const names = new Map(all.map(({ spanId, name }) => [spanId, name]));
  return all.map(({ name, parentSpanId, traceId, kind, status, attributes }) => ({
    name,
    parent: names.get(parentSpanId ?? ''),
    traceId,
    kind,
    status: status?.code ?? 0,
    attributes: toObject(attributes),
  }));
}

function collectedMetrics(received: readonly Received[]): CollectedMetric[] {
  const all: OtlpMetric[] = received
    .flatMap(({ body }) => body.resourceMetrics ?? [])
    .flatMap(({ scopeMetrics }) => scopeMetrics)
    .filter(({ scope }) => scope.name === 'waymark')
    .flatMap(({ metrics }) => metrics);
  return all.map(({ name, unit, histogram, sum }) => {
    const points = (histogram ?? sum)?.dataPoints ?? [];
    return {
      name,
      unit,
      bounds: points[0]?.explicitBounds,
      labels: points.map(({ attributes }) => toObject(attributes)),
    };
  });
}

function toObject(attributes: KeyValues = []): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, toValue(value)]));
}

function toValue(value: AnyValue): unknown {
  if (value.arrayValue) return value.arrayValue.values.map(toValue);
  if (value.intValue !== undefined) return Number(value.intValue);
  return value.stringValue ?? value.doubleValue ?? value.boolValue;
}
