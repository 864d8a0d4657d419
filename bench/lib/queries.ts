import { createRequire } from 'node:module';
import type { Variant } from '../systems/system.ts';

const require = createRequire(import.meta.url);

type Method = (...args: unknown[]) => unknown;

/**
 * Counts the statements that go to a database of this kind from now on, whoever sends them; BEGIN and COMMIT are statements, too.
 * Nothing for what is no database, or is reached through a library that cannot be watched.
 */
export function countQueries(system: string, store: Variant['store']): (() => number) | undefined {
  let count = 0;
  const watch = (prototype: object, names: readonly string[]): void => {
    const methods = prototype as Record<string, Method>;
    for (const name of names) {
      const method = methods[name];
      if (method === undefined) throw new Error(`There is no ${name} to count.`);
      methods[name] = function (this: unknown, ...args: unknown[]) {
        count++;
        return method.apply(this, args);
      };
    }
  };
  switch (store) {
    case 'postgres':
      watch((require('pg') as typeof import('pg')).Client.prototype, ['query']);
      return () => count;
    case 'sqlite':
    case 'sqlite-full':
      if (system === 'waymark') {
        const { DatabaseSync, StatementSync } =
          require('node:sqlite') as typeof import('node:sqlite');
        watch(StatementSync.prototype, ['run', 'get', 'all', 'iterate']);
        watch(DatabaseSync.prototype, ['exec']);
        return () => count;
      }
      if (system === 'langgraph') {
        const Database = require('better-sqlite3') as new (
          file: string,
        ) => {
          prepare(sql: string): object;
          close(): void;
        };
        const database = new Database(':memory:');
        watch(Object.getPrototypeOf(database.prepare('SELECT 1')), [
          'run',
          'get',
          'all',
          'iterate',
        ]);
        watch(Database.prototype, ['exec']);
        database.close();
        return () => count;
      }
      return undefined;
    default:
      return undefined;
  }
}
