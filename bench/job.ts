import type { Pace } from './lib/pace.ts';
import type { Place } from './systems/system.ts';

/** How much is measured, and how long it may take. */
export interface Scale {
  /** Seconds in which all of it must be done; what is left over is reported as not measured. */
  readonly seconds: number;
  /** Seconds after which a process that measures one thing is ended. */
  readonly cellSeconds: number;
  /** The turns whose time is told. */
  readonly lengths: readonly number[];
  /** Short sessions before each long one, for the first turns. */
  readonly short: number;
  /**
   * Milliseconds of turns before anything is measured in a process. V8 compiles a function that is called once a turn well
   * only after thousands of them, and what is asked is how a server does that is up, not one that begins.
   */
  readonly warmUp: number;
  /**
   * Long sessions; slow systems run one. A shared machine is twice as fast in one second as in another: turns of each length are
   * taken from all of these seconds.
   */
  readonly long: number;
  /** Milliseconds after which a system's long session is ended where it is. */
  readonly budget: number;
  readonly toolTurns: number;
  /** Repetitions of what is done in processes of its own. */
  readonly processes: number;
  readonly branches: number;
  readonly idleSessions: number;
  /** Parts in which idle sessions are added; the median of what each takes stands for all. */
  readonly idleParts: number;
  /** Milliseconds for which each floor is driven. */
  readonly floor: number;
  readonly http: {
    readonly clients: readonly number[];
    /** How often the server and the bare one take turns, and the seconds of each turn. */
    readonly rounds: number;
    readonly seconds: number;
    /** Pieces of an answer: of a usual one, by which a turn is told, and of a long one, by which a piece is. */
    readonly pieces: readonly number[];
  };
  readonly paced: Pace & {
    readonly every: number;
    readonly streams: number;
    /** How often the server and the bare one take turns, and the turns of each stream in a round. */
    readonly rounds: number;
    readonly turns: number;
    /** More streams for longer, to see that nothing falls behind. */
    readonly hold?: { readonly streams: number; readonly seconds: number };
  };
  readonly background: {
    readonly detaches: number;
    readonly aborts: number;
    readonly kills: number;
  };
}

export const full: Scale = {
  seconds: 38 * 60,
  cellSeconds: 270,
  lengths: [1, 10, 100, 1000],
  short: 12,
  warmUp: 6_000,
  long: 25,
  budget: 170_000,
  toolTurns: 200,
  processes: 5,
  branches: 15,
  idleSessions: 1000,
  idleParts: 9,
  floor: 1500,
  http: { clients: [1, 50, 500], rounds: 5, seconds: 0.6, pieces: [20, 1000] },
  paced: {
    streams: 200,
    pieces: 250,
    every: 20,
    rounds: 5,
    turns: 1,
    hold: { streams: 1000, seconds: 60 },
  },
  background: { detaches: 100, aborts: 30, kills: 3 },
};

/** The same in three minutes: shorter sessions, fewer repetitions. */
export const quick: Scale = {
  seconds: 180,
  cellSeconds: 20,
  lengths: [1, 10, 100],
  short: 8,
  warmUp: 200,
  long: 1,
  budget: 3_000,
  toolTurns: 20,
  processes: 1,
  branches: 3,
  idleSessions: 100,
  idleParts: 3,
  floor: 100,
  http: { clients: [1, 50], rounds: 1, seconds: 0.3, pieces: [20] },
  paced: { streams: 50, pieces: 50, every: 20, rounds: 1, turns: 1 },
  background: { detaches: 5, aborts: 3, kills: 0 },
};

/** One thing to measure, in a process of its own. */
export interface Job {
  readonly measure:
    | 'turns'
    | 'stored'
    | 'tool-turns'
    | 'resume'
    | 'branch'
    | 'idle'
    | 'floors'
    | 'http'
    | 'paced'
    | 'background';
  readonly system: string;
  readonly variant: string;
  readonly place: Place;
  readonly scale: Scale;
}
