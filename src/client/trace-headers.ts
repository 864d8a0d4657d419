// OpenTelemetry's API keeps what is registered in one global, and the active span in its context under one key, the same
// for every copy of its first major version. Reading them there needs no dependency and works in a browser too.
const registered = Symbol.for('opentelemetry.js.api.1');
const spanKey = Symbol.for('OpenTelemetry Context Key SPAN');

interface ActiveSpan {
  spanContext(): {
    readonly traceId: string;
    readonly spanId: string;
    readonly traceFlags: number;
    readonly traceState?: { serialize(): string };
  };
}

interface Registered {
  readonly context?: { active(): { getValue(key: symbol): unknown } };
}

/** The W3C trace headers of the active span, so that client and server share a trace; none without tracing. */
export function traceHeaders(): Readonly<Record<string, string>> {
  const { context } = (globalThis as { readonly [registered]?: Registered })[registered] ?? {};
  const span = context?.active().getValue(spanKey) as ActiveSpan | undefined;
  const place = span?.spanContext();
  if (!place || /^0*$/.test(place.traceId)) return {};
  const flags = place.traceFlags.toString(16).padStart(2, '0');
  const traceparent = `00-${place.traceId}-${place.spanId}-${flags}`;
  const tracestate = place.traceState?.serialize();
  return tracestate ? { traceparent, tracestate } : { traceparent };
}
