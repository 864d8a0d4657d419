import type { Terminal } from '../terminal.ts';
import { oneLine, safe } from '../text/safe.ts';
import type { Served } from './serve-file.ts';

/** What is shown once a file is served. */
export function servedText(served: Served, { style }: Pick<Terminal, 'style'>): string {
  const { url, agents, stores, modelNote, studio } = served;
  const width = Math.max(0, ...agents.map(({ name }) => name.length));
  const facts = [
    ['Studio', studio ? style.accent(`${url}/studio/`) : style.dim('not built')],
    ['Server', style.accent(url)],
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
  if (stores.length === 0) return 'none: sessions are kept by the client';
  const isForgetful = stores.includes('memory');
  return `${stores.join(', ')}${isForgetful ? ' (memory: a restart forgets its sessions)' : ''}`;
}
