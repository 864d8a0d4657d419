import type { OutputFormat } from './format.ts';

/** The answer as it is. */
export const textFormat: OutputFormat = {
  name: 'text',
  request: () => undefined,
  instructions: () => undefined,
  parse: (text) => text,
  parsePartial: (text) => text,
};
