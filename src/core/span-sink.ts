import { createContextKey } from './async/context.ts';
import { errorText, messageOf, originalOf, type Status, toErrorBody } from './error.ts';
import { randomBytes } from './platform.ts';

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

/** Whether there is a listener. */
export function hasSpanSink(): boolean {
  return sinks.size > 0;
}

/** Tells the listeners that a session was deleted. */
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
