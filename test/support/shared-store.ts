import { createRequire } from 'node:module';
import type { Store } from '../../src/store/contract/store.ts';
import { libsqlStore } from '../../src/store/libsql/index.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';

/** The store that processes share. */
export type SharedStore =
  | { readonly kind: 'sqlite'; readonly path: string }
  | {
      readonly kind: 'libsql';
      readonly url: string;
      /** A file of the project: a bundle of this script does not find the package, which has a part that is not JavaScript. */
      readonly from: string;
    }
  | { readonly kind: 'postgres'; readonly connectionString: string; readonly schema: string };

type Libsql = typeof import('@libsql/client');

export function openShared(shared: SharedStore): Store {
  if (shared.kind === 'libsql') {
    const { createClient } = createRequire(shared.from)('@libsql/client') as Libsql;
    return libsqlStore({ client: createClient({ url: shared.url }) });
  }
  return shared.kind === 'sqlite'
    ? sqliteStore(shared.path)
    : postgresStore({ connectionString: shared.connectionString, schema: shared.schema, max: 3 });
}
