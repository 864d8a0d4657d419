import { brief, isRecord, type Json, type JsonRecord } from './json.ts';

/** How far a run is, as its last status tells. */
export interface Progress {
  /** From 0 to 1; absent when the status has no figures. */
  readonly part?: number;
  /** `3/5`. */
  readonly figures?: string;
  readonly text?: string;
}

const doneNames = ['done', 'step', 'current', 'completed', 'index'];
const allNames = ['of', 'total', 'steps', 'count', 'max'];
const shareNames = ['progress', 'percent', 'fraction', 'ratio'];

/** Reads a status as people write them: `{ done, of }`, `{ progress: 0.4 }`, `{ phase: 'drafting' }`, or a text. */
export function toProgress(status: Json | undefined): Progress {
  if (typeof status === 'string') return { text: status };
  if (typeof status === 'number') return share(status);
  if (!isRecord(status)) return status === undefined ? {} : { text: brief(status) };
  const done = numberOf(status, doneNames);
  const all = numberOf(status, allNames);
  const text = Object.values(status).find((value) => typeof value === 'string');
  const said = typeof text === 'string' ? { text } : {};
  if (done !== undefined && all !== undefined && all > 0) {
    return { part: limit(done / all), figures: `${done}/${all}`, ...said };
  }
  const whole = numberOf(status, shareNames);
  if (whole !== undefined) return { ...share(whole), ...said };
  return typeof text === 'string' ? said : { text: brief(status) };
}

function numberOf(status: JsonRecord, names: readonly string[]) {
  const name = names.find((candidate) => typeof status[candidate] === 'number');
  const value = name === undefined ? undefined : status[name];
  return typeof value === 'number' ? value : undefined;
}

function share(value: number): Progress {
  const part = limit(value > 1 ? value / 100 : value);
  return { part, figures: `${Math.round(part * 100)} %` };
}

function limit(part: number): number {
  return Math.min(1, Math.max(0, part));
}
