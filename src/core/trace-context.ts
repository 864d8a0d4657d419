// OpenTelemetry's API keeps what is registered in one global, and the active span in its context under one key, the same
// for every copy of its first major version. Reading them there needs no dependency and works in a browser too.
const registered = Symbol.for('opentelemetry.js.api.1');
const spanKey = Symbol.for('OpenTelemetry Context Key SPAN');

/** A place in a trace, in the form of the W3C headers; plain JSON, so it can be stored with a run. */
export type TraceContext = { readonly traceparent: string; readonly tracestate?: string };

interface ActiveSpan {
  spanContext(): {
    readonly traceId: string;
    readonly spanId: string;
    readonly traceFlags: number;
    readonly traceState?: { serialize(): string };
  };
}

interface Registered {
  readonly trace?: object;
  readonly metrics?: object;
  readonly context?: { active(): { getValue(key: symbol): unknown } };
}

/** The parts of OpenTelemetry's API that are set up. */
export function openTelemetry(): Registered {
  return (globalThis as { readonly [registered]?: Registered })[registered] ?? {};
}

/** The place of the active span; `undefined` without tracing. */
export function currentTrace(): TraceContext | undefined {
  const span = openTelemetry().context?.active().getValue(spanKey) as ActiveSpan | undefined;
  return span && traceContextOf(span);
}

/** The place of a span; `undefined` for one that is not valid. */
export function traceContextOf(span: ActiveSpan): TraceContext | undefined {
  const { traceId, spanId, traceFlags, traceState } = span.spanContext();
  if (/^0*$/.test(traceId) || /^0*$/.test(spanId)) return undefined;
  const traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
  const tracestate = traceState?.serialize();
  return tracestate ? { traceparent, tracestate } : { traceparent };
}
