import type * as OpenTelemetry from '@opentelemetry/api';
import { getOrMake } from './get-or-make.ts';
import { defined } from './json/json.ts';
import { requireOptional } from './platform.ts';
import { openTelemetry } from './trace-context.ts';

export interface GaugeOptions {
  readonly unit: string;
  readonly description: string;
}

/**
 * Gauges that are read when metrics are collected. Does nothing when no meter provider has been registered by then. Returns a
 * function that stops the collection.
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

const seconds = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
] as const;

const shortSeconds = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
] as const;

/** The histograms of the GenAI conventions, with the buckets that these give them, and our own. */
const histograms = {
  'gen_ai.client.operation.duration': {
    unit: 's',
    description: 'Duration of a model call.',
    buckets: seconds,
  },
  'gen_ai.client.token.usage': {
    unit: '{token}',
    description: 'Tokens of a model call.',
    buckets: [
      1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216,
      67_108_864,
    ],
  },
  'gen_ai.client.operation.time_to_first_chunk': {
    unit: 's',
    description: 'Time to the first chunk of an answer.',
    buckets: shortSeconds,
  },
  'gen_ai.invoke_agent.duration': {
    unit: 's',
    description: 'Duration of an invocation of an agent.',
    buckets: [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6],
  },
  'gen_ai.execute_tool.duration': {
    unit: 's',
    description: 'Duration of a tool call.',
    buckets: seconds,
  },
  'waymark.event_lag': {
    unit: 's',
    description: 'Time until an event is in the store, where other processes see it.',
    buckets: shortSeconds,
  },
} as const;

const counters = {
  'waymark.turns': { unit: '{turn}', description: 'Turns that have ended.' },
  'waymark.failures': { unit: '{failure}', description: 'Failures that were reported.' },
  'waymark.undone_effects': { unit: '{effect}', description: 'Effects that were undone.' },
  'waymark.active_runs': { unit: '{run}', description: 'Invocations that are under way.' },
} as const;

type Labels = Readonly<Record<string, string | number | boolean | undefined>>;

interface Instruments {
  readonly histograms: Map<string, OpenTelemetry.Histogram>;
  readonly counters: Map<string, OpenTelemetry.UpDownCounter>;
  readonly meter: OpenTelemetry.Meter;
}

// By the provider that was registered: another one may be registered later.
const known = new WeakMap<object, Instruments>();

/** Whether metrics are collected; otherwise skip what is costly to measure. */
export function hasMetrics(): boolean {
  return openTelemetry().metrics !== undefined;
}

export function recordValue(name: keyof typeof histograms, value: number, labels: Labels): void {
  const found = instruments();
  if (found === undefined) return;
  const { buckets, ...about } = histograms[name];
  const histogram = getOrMake(found.histograms, name, () => {
    const advice = { explicitBucketBoundaries: [...buckets] };
    return found.meter.createHistogram(name, { ...about, advice });
  });
  histogram.record(value, defined(labels));
}

export function count(name: keyof typeof counters, by: number, labels: Labels): void {
  const found = instruments();
  if (found === undefined) return;
  const counter = getOrMake(found.counters, name, () =>
    name === 'waymark.active_runs'
      ? found.meter.createUpDownCounter(name, counters[name])
      : found.meter.createCounter(name, counters[name]),
  );
  counter.add(by, defined(labels));
}

function instruments(): Instruments | undefined {
  const registeredProvider = openTelemetry().metrics;
  if (registeredProvider === undefined) return undefined;
  let found = known.get(registeredProvider);
  if (found === undefined) {
    const meter = api()?.metrics.getMeter('waymark');
    if (meter === undefined) return undefined;
    found = { histograms: new Map(), counters: new Map(), meter };
    known.set(registeredProvider, found);
  }
  return found;
}

function api(): typeof OpenTelemetry | undefined {
  if (!hasMetrics()) return undefined;
  return requireOptional('@opentelemetry/api') as typeof OpenTelemetry | undefined;
}
