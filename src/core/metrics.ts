import type * as OpenTelemetry from '@opentelemetry/api';
import { requireOptional } from './platform.ts';

// The API keeps what is registered in one global, under the same key for every copy of its first major version.
const registered = Symbol.for('opentelemetry.js.api.1');

/** How a gauge is shown. */
export interface GaugeOptions {
  readonly unit: string;
  readonly description: string;
}

/**
 * Gauges that are read when metrics are collected. Does nothing when no meter provider has been registered by then.
 * Returns the way to stop.
 */
export function observeGauges<Name extends string>(
  gauges: Readonly<Record<Name, GaugeOptions>>,
  read: () => Promise<Readonly<Record<Name, number>>>,
): () => void {
  const meter = api()?.metrics.getMeter('waymark');
  if (meter === undefined) return () => {};
  const names = Object.keys(gauges) as Name[];
  const made = names.map(
    (name) => [name, meter.createObservableGauge(name, gauges[name])] as const,
  );
  const observables = made.map(([, gauge]) => gauge);
  const observe = async (result: OpenTelemetry.BatchObservableResult): Promise<void> => {
    const values = await read();
    for (const [name, gauge] of made) result.observe(gauge, values[name]);
  };
  meter.addBatchObservableCallback(observe, observables);
  return () => meter.removeBatchObservableCallback(observe, observables);
}

function api(): typeof OpenTelemetry | undefined {
  const global = (globalThis as { [registered]?: { readonly metrics?: unknown } })[registered];
  if (global?.metrics === undefined) return undefined;
  return requireOptional('@opentelemetry/api') as typeof OpenTelemetry | undefined;
}
