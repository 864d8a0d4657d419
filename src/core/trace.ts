import type * as OpenTelemetry from '@opentelemetry/api';
import { errorText, messageOf, originalOf, rootOf, type Status, toErrorBody } from './error.ts';
import { createContextKey, randomBytes, requireOptional } from './platform.ts';
import { currentTrace, openTelemetry, type TraceContext, traceContextOf } from './trace-context.ts';
import { attributes as names } from './trace-names.ts';

/** An error as the owner of the process sees it. */
export interface SpanError {
  readonly status: Status;
  readonly message: string;
  /** Type, message, stack and causes. */
  readonly text: string;
}

/** A span for a listener in this process; its attributes and error are filled in until it ends. */
export interface SpanRecord {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId?: string;
  readonly name: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** The owner of its session. Only listeners in this process get it, never a tracer. */
  readonly owner?: string;
  readonly error?: SpanError;
  /** The request and response of a model call. Only listeners in this process get it, never a tracer. */
  readonly content?: unknown;
}

/** Called for every span of this process, for development tools; must not throw. */
export interface SpanSink {
  started(span: SpanRecord): void;
  ended(span: SpanRecord): void;
  /** A session was deleted: the listener drops what it holds of it. */
  sessionDeleted?(sessionId: string): void;
}

/** The part of a span that its work changes. */
export interface OpenSpan {
  setAttributes(attributes: Readonly<Record<string, unknown>>): void;
  setContent(content: unknown): void;
  recordError(error: unknown): void;
  end(): void;
}

const sinks = new Set<SpanSink>();
const active = createContextKey<SpanRecord>('recorded span');

/** Passes the spans of this process on from now on, until the returned function is called. */
export function addSpanSink(sink: SpanSink): () => void {
  sinks.add(sink);
  return () => void sinks.delete(sink);
}

export function hasSpanSink(): boolean {
  return sinks.size > 0;
}

export function reportDeletedSession(sessionId: string): void {
  for (const sink of sinks) sink.sessionDeleted?.(sessionId);
}

/** Opens a span below the active one and runs work inside it; the work ends it. */
export function recordSpan<T>(
  name: string,
  { attributes = {}, owner }: { readonly attributes?: object; readonly owner?: string | undefined },
  fn: (span: OpenSpan) => T,
): T {
  const parent = active.get();
  const span = {
    traceId: parent?.traceId ?? newId(16),
    spanId: newId(8),
    ...(parent && { parentId: parent.spanId }),
    name,
    attributes: { ...attributes },
    ...(owner !== undefined && { owner }),
  };
  const record: SpanRecord & { error?: SpanError; content?: unknown } = span;
  for (const sink of sinks) sink.started(record);
  const open: OpenSpan = {
    setAttributes: (more) => void Object.assign(span.attributes, more),
    setContent(content) {
      record.content = content;
    },
    recordError(error) {
      record.error = {
        status: toErrorBody(error).status,
        message: messageOf(originalOf(error)),
        text: errorText(error),
      };
    },
    end() {
      for (const sink of sinks) sink.ended(record);
    },
  };
  return active.run(record, () => fn(open));
}

function newId(bytes: number): string {
  let id = '';
  for (const byte of randomBytes(new Uint8Array(bytes))) id += byte.toString(16).padStart(2, '0');
  return id;
}

type Api = typeof OpenTelemetry;

/** The attributes of a span: ids, names and counts, never content. */
export type SpanAttributes = Readonly<
  Record<string, string | number | boolean | readonly string[] | undefined>
>;

/** The part of a span that its work sees. */
export interface Span {
  /** Whether the span is recorded; otherwise skip attributes that are costly to compute. */
  readonly recording: boolean;
  setAttributes(attributes: SpanAttributes): void;
  /** Content for development tools in this process (`SpanRecord.content`); a tracer never gets it. */
  setContent(content: unknown): void;
  /** Marks the span as failed without ending it. */
  recordError(error: unknown): void;
  /** Its place in the trace, to hand to another process. */
  context(): TraceContext | undefined;
}

export interface SpanOptions {
  /** @default 'internal' */
  readonly kind?: 'internal' | 'client' | 'server' | 'producer' | 'consumer';
  /** A function is called only when spans are recorded. */
  readonly attributes?: SpanAttributes | (() => SpanAttributes);
  /** The owner of its session, for development tools in this process; a tracer never gets it. */
  readonly owner?: string | undefined;
  /** The span it belongs under, when that is not the active one. */
  readonly parent?: TraceContext | undefined;
}

const noSpan: Span = {
  recording: false,
  setAttributes() {},
  setContent() {},
  recordError() {},
  context: () => undefined,
};

/** Runs work inside a span that ends with it and records its error; costs next to nothing without a tracer. */
export function inSpan<T>(name: string, options: SpanOptions, fn: (span: Span) => T): T {
  // The requests of a server are no part of what an agent does.
  const hasSink = hasSpanSink() && options.kind !== 'server';
  const api = tracing();
  if (!hasSink && !api) return fn(noSpan);
  const { attributes: given = {}, owner } = options;
  const attributes = typeof given === 'function' ? given() : given;
  const traced = (work: (span: Span) => T): T =>
    api ? inTracedSpan(api, name, { ...options, attributes }, work) : work(noSpan);
  if (!hasSink) return traced(fn);
  return recordSpan(name, { attributes, owner }, (open) =>
    ending(open, () => traced((span) => fn(alsoIn(open, span)))),
  );
}

function inTracedSpan<T>(
  api: Api,
  name: string,
  options: SpanOptions & { readonly attributes: SpanAttributes },
  fn: (span: Span) => T,
): T {
  const { kind = 'internal', attributes, parent } = options;
  const context = parent ? contextOf(api, parent) : api.context.active();
  const spanOptions = { kind: kinds[kind], attributes: defined(attributes) };
  return api.trace.getTracer('waymark').startActiveSpan(name, spanOptions, context, (span) => {
    const ours = wrap(api, span);
    return ending({ recordError: ours.recordError, end: () => span.end() }, () => fn(ours));
  });
}

/** A span that is also reported to the listeners in this process. */
function alsoIn(open: OpenSpan, span: Span): Span {
  return {
    recording: true,
    setAttributes(attributes) {
      open.setAttributes(attributes);
      span.setAttributes(attributes);
    },
    setContent: open.setContent,
    recordError(error) {
      open.recordError(error);
      span.recordError(error);
    },
    context: span.context,
  };
}

/** Adds attributes to the active span: a tool call is one span, whatever carries it out. */
export function setActiveAttributes(attributes: SpanAttributes): void {
  Object.assign(active.get()?.attributes ?? {}, attributes);
  tracing()?.trace.getActiveSpan()?.setAttributes(defined(attributes));
}

/** Adds the active trace to the headers of a request. */
export function injectTrace(headers: Headers | Record<string, string>): void {
  const trace = currentTrace();
  for (const [name, value] of Object.entries(trace ?? {})) {
    if (headers instanceof Headers) headers.set(name, value);
    else headers[name] = value;
  }
}

/** The trace that the headers of a request belong to, if they name one. */
export function extractTrace(
  headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>,
): TraceContext | undefined {
  const header = (name: string): string | undefined => {
    const value = headers instanceof Headers ? headers.get(name) : headers[name];
    return typeof value === 'string' ? value : value?.[0];
  };
  const traceparent = header('traceparent');
  if (!traceparent || !parseTraceparent(traceparent)) return undefined;
  const tracestate = header('tracestate');
  return tracestate ? { traceparent, tracestate } : { traceparent };
}

let loaded: { readonly api: Api | undefined } | undefined;

// The package takes 26 ms to load, so it is loaded only when tracing is on.
function tracing(): Api | undefined {
  if (openTelemetry().trace === undefined) return undefined;
  loaded ??= { api: requireOptional('@opentelemetry/api') as Api | undefined };
  return loaded.api;
}

// The values of the API's SpanKind.
const kinds = { internal: 0, server: 1, client: 2, producer: 3, consumer: 4 } as const;

// Ends a span with the work that runs inside it.
function ending<T>(span: Pick<OpenSpan, 'recordError' | 'end'>, work: () => T): T {
  const done = <Value>(value: Value): Value => {
    span.end();
    return value;
  };
  const failed = (error: unknown): never => {
    span.recordError(error);
    span.end();
    throw error;
  };
  let result: T;
  try {
    result = work();
  } catch (error) {
    return failed(error);
  }
  // T is the promise type that the work returned; following it does not change its value.
  return result instanceof Promise ? (result.then(done, failed) as T) : done(result);
}

function wrap(api: Api, span: OpenTelemetry.Span): Span {
  return {
    recording: span.isRecording(),
    setAttributes: (attributes) => {
      span.setAttributes(defined(attributes));
    },
    setContent() {},
    recordError(error) {
      // Spans go to the owner of the process, so they hold what was thrown.
      const root = rootOf(error);
      span.recordException({
        name: root instanceof Error ? root.name : 'Error',
        message: messageOf(root),
        stack: errorText(error),
      });
      span.setAttributes({ [names.errorType]: toErrorBody(error).status });
      span.setStatus({ code: api.SpanStatusCode.ERROR, message: messageOf(originalOf(error)) });
    },
    context: () => traceContextOf(span),
  };
}

function defined(attributes: SpanAttributes): OpenTelemetry.Attributes {
  const result: OpenTelemetry.Attributes = {};
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) result[name] = typeof value === 'object' ? [...value] : value;
  }
  return result;
}

function contextOf(api: Api, { traceparent, tracestate }: TraceContext): OpenTelemetry.Context {
  const parent = parseTraceparent(traceparent);
  if (!parent) return api.context.active();
  return api.trace.setSpanContext(api.context.active(), {
    ...parent,
    isRemote: true,
    ...(tracestate && { traceState: api.createTraceState(tracestate) }),
  });
}

const traceparentForm = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;

function parseTraceparent(
  header: string,
): { traceId: string; spanId: string; traceFlags: number } | undefined {
  const [, version, traceId = '', spanId = '', flags = '', rest] =
    traceparentForm.exec(header) ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && rest)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1 };
}
