/** Which variants of which system take part in a measure. */
export type Entries = readonly (readonly [system: string, variant: string])[];

/** A: sessions that are not on a disk. */
export const unstored: Entries = [
  ['waymark', 'client'],
  ['waymark', 'memory'],
  ['genkit', 'client'],
  ['genkit', 'memory'],
  ['langgraph', 'client'],
  ['langgraph', 'memory'],
  ['mastra', 'memory'],
  ['openai', 'memory'],
  ['ai', 'stream-text'],
  ['ai', 'agent'],
];

/** B, C and F: sessions that are. The slowest is last. */
export const stored: Entries = [
  ['waymark', 'sqlite'],
  ['waymark', 'sqlite-full'],
  ['waymark', 'file-fast'],
  ['waymark', 'file'],
  ['waymark', 'postgres'],
  ['genkit', 'file'],
  ['langgraph', 'sqlite'],
  ['mastra', 'libsql'],
  ['langgraph', 'postgres'],
];

/** E: sessions that are open and idle. */
export const idle: Entries = [
  ['waymark', 'client'],
  ['waymark', 'memory'],
  ['waymark', 'sqlite'],
  ['genkit', 'client'],
  ['genkit', 'memory'],
  ['langgraph', 'memory'],
  ['mastra', 'memory'],
  ['openai', 'memory'],
];

/** G. */
export const http: Entries = [
  ['', 'bare'],
  ['waymark', 'waymark'],
  ['waymark', 'waymark-sqlite'],
  ['genkit', 'genkit'],
  ['ai', 'ai'],
];

/** G, at the speed of a real model. */
export const paced: Entries = [
  ['', 'bare'],
  ['waymark', 'waymark'],
  ['waymark', 'waymark-sqlite'],
  ['waymark', 'waymark-file'],
  ['waymark', 'waymark-postgres'],
  ['genkit', 'genkit'],
  ['ai', 'ai'],
];

/** H: only these have runs in the background that another process can reach. */
export const background: Entries = [
  ['waymark', 'sqlite'],
  ['waymark', 'file'],
  ['waymark', 'postgres'],
  ['genkit', 'file'],
];

/**
 * What `--only` may name, in the order in which it is run: what takes its time with the slowest systems is last, so that it
 * is they who are left without an answer when time is over.
 */
export const measures = [
  'floors',
  'footprint',
  'http',
  'paced',
  'background',
  'idle',
  'turns',
  'tool-turns',
  'stored',
  'resume',
  'branch',
] as const;

export type Measure = (typeof measures)[number];

/** The entries of a measure. */
export function entriesOf(measure: Exclude<Measure, 'footprint'>): Entries {
  switch (measure) {
    case 'floors':
      return [['', '']];
    case 'turns':
      return unstored;
    case 'stored':
    case 'tool-turns':
    case 'resume':
    case 'branch':
      return stored;
    case 'idle':
      return idle;
    case 'http':
      return http;
    case 'paced':
      return paced;
    case 'background':
      return background;
  }
}
