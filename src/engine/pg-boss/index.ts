/**
 * An engine that dispatches background runs by pg-boss.
 *
 * @module
 */

export type { DeadLetter } from '../engine.ts';
export type { PgBossEngineOptions } from './options.ts';
export { type PgBossEngine, pgBossEngine } from './pg-boss-engine.ts';
export type { RunSchedule } from './schedules.ts';
