import type { Machine, Noise } from './lib/machine.ts';
import type { Stats } from './lib/stats.ts';
import type { BackgroundTimes } from './measures/background.ts';
import type { Branch } from './measures/branch.ts';
import type { Floors } from './measures/floors.ts';
import type { FootprintCost, FootprintFailure } from './measures/footprint.ts';
import type { Http } from './measures/http.ts';
import type { Idle } from './measures/idle.ts';
import type { Paced } from './measures/paced.ts';
import type { StoredTurns } from './measures/stored.ts';
import type { ToolTurns } from './measures/tool-turns.ts';
import type { TurnTimes } from './measures/turns.ts';
import type { Measure } from './plan.ts';
import type { Variant } from './systems/system.ts';

/** What a measure found of one variant of one system. */
export interface Row<Result> {
  readonly system: string;
  readonly variant: string;
  readonly title: string;
  readonly store?: Variant['store'];
  readonly note?: string;
  readonly result?: Result;
  /** Why there is no result. */
  readonly error?: string;
  readonly noise?: Noise;
}

/** C, over several processes. */
export interface Resumed {
  /** The turn that was run first. */
  readonly turn: number;
  readonly ms: Stats;
}

/** Everything that a run of the benchmarks found. */
export interface Results {
  readonly about: {
    readonly date: string;
    readonly commit: string;
    readonly quick: boolean;
    readonly seconds: number;
    readonly machine: Machine;
    readonly load: readonly number[];
    readonly versions: Readonly<Record<string, string>>;
    /** Measures that were run again later than the others. */
    readonly parts?: Partial<Record<Measure, Pick<Results['about'], 'date' | 'commit' | 'load'>>>;
  };
  readonly lengths: readonly number[];
  readonly floors: readonly Row<Floors>[];
  readonly turns: readonly Row<TurnTimes>[];
  readonly stored: readonly Row<StoredTurns>[];
  readonly toolTurns: readonly Row<ToolTurns>[];
  readonly resume: readonly Row<Resumed>[];
  readonly branch: readonly Row<Branch>[];
  readonly footprint: readonly (FootprintCost | FootprintFailure)[];
  readonly idle: readonly Row<Idle>[];
  readonly http: readonly Row<Http>[];
  /** Missing in results of before there was this measure. */
  readonly paced?: readonly Row<Paced>[];
  readonly background: readonly Row<BackgroundTimes>[];
}
