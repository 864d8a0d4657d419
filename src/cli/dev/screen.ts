import type { Terminal } from '../terminal.ts';
import { oneLine, safe } from '../text/safe.ts';
import { defaultPort, type Served } from './serve-file.ts';

/** The text of the screen once the server has started. */
export function servedText(served: Served, { style }: Pick<Terminal, 'style'>): string {
  const { url, agents, stores, modelNote, studio, isOtherPort } = served;
  const width = Math.max(0, ...agents.map(({ name }) => name.length));
  const facts = [
    ['Studio', studio ? style.accent(`${url}/studio/`) : style.dim('not built')],
    ['Server', style.accent(url) + (isOtherPort ? `  (port ${defaultPort} is in use)` : '')],
    ['Model', modelNote === undefined ? '' : safe(modelNote)],
    ['Store', storeText(stores)],
  ].filter(([, value]) => value !== '');
  return [
    '',
    ...facts.map(([name = '', value = '']) => `  ${style.bold(name.padEnd(7))} ${value}`),
    '',
    ...agents.map(({ name, description = '' }) =>
      `  ${style.accent(name.padEnd(width))}  ${style.dim(oneLine(description, 90))}`.trimEnd(),
    ),
    '',
  ].join('\n');
}

function storeText(stores: readonly string[]): string {
  if (stores.length === 0) return 'none: clients keep the sessions';
  const isMemory = stores.includes('memory');
  return `${stores.join(', ')}${isMemory ? ' (memory: sessions are lost on restart)' : ''}`;
}
