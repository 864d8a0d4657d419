import { libsqlFolder } from '../support/libsql.ts';
import { storeProcesses } from '../support/store-processes.ts';

async function share() {
  const { url, remove } = await libsqlFolder();
  return { shared: { kind: 'libsql', url, from: import.meta.url } as const, close: remove };
}

storeProcesses('one libSQL file', share, { processes: 2 });
