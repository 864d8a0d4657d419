import { failedPrecondition, invalid } from '../../core/error.ts';
import { createIds } from '../../core/id.ts';
import { checkOptions, type OptionNames } from '../../core/options.ts';
import { type Clock, systemClock } from '../../core/time.ts';
import type { Encryption } from '../sql/content/cipher.ts';
import type { QueryOptions } from '../sql/database/driver.ts';
import { type SqlStore, storeOver } from '../sql/sql-store.ts';
import { type LibsqlClient, libsqlDriver } from './driver.ts';

/** Where the database is: a URL, for which the store makes a client, or a client of yours. */
type Source =
  | {
      /** `libsql://…`, `https://…` or `file:…`. `undefined` is an error, so that a missing environment variable is noticed. */
      readonly url: string | undefined;
      /** The token for that server. @default none */
      readonly authToken?: string | undefined;
      readonly client?: never;
    }
  | {
      /** A client of `@libsql/client`, for example of an embedded replica. You close it. */
      readonly client: LibsqlClient;
      readonly url?: never;
      readonly authToken?: never;
    };

/** Options of `libsqlStore`: a URL or a client, and more. */
export type LibsqlStoreOptions = Source &
  QueryOptions & {
    /** Encrypts content with your key. @default none */
    readonly encryption?: Encryption;
    /** Milliseconds for which the events of a run are kept after its end. @default 60000 */
    readonly eventsTtl?: number;
    /** The clock for timers, and for stored times in a file. Stored times on a server are the server's. @default the system clock */
    readonly clock?: Clock;
    /** @default time-ordered UUIDs */
    readonly newId?: () => string;
  };

const optionNames: OptionNames<LibsqlStoreOptions> = {
  url: true,
  authToken: true,
  client: true,
  onQuery: true,
  encryption: true,
  eventsTtl: true,
  clock: true,
  newId: true,
};

/** A store in a libSQL database or in Turso, through the package `@libsql/client`. Any number of processes may use it. */
export function libsqlStore(options: LibsqlStoreOptions): SqlStore {
  checkOptions(options, optionNames, 'libsqlStore()');
  checkSource(options);
  const { encryption, eventsTtl, onQuery } = options;
  const { clock = systemClock, newId = createIds(clock) } = options;
  const driver = libsqlDriver({
    openClient: () => openClient(options),
    ownsClient: options.client === undefined,
    address: addressOf(options),
    clock,
    newId,
    onQuery,
  });
  return storeOver({ name: 'libsql', driver, encryption, clock, newId, eventsTtl });
}

function checkSource({ url, client }: Source): void {
  const isClient = typeof client === 'object' && typeof client.transaction === 'function';
  if (isClient || (typeof url === 'string' && url !== '')) return;
  throw invalid(
    'The libSQL store needs a `url` or a `client` of "@libsql/client". Is the environment variable with the URL set?',
  );
}

/** The URL without parameters, which may have a token. */
function addressOf({ url }: Source): string {
  return url?.replace(/\?.*$/s, '') ?? 'of the given client';
}

async function openClient({ url = '', authToken, client }: Source): Promise<LibsqlClient> {
  if (client !== undefined) return client;
  const { createClient } = await loadLibsql();
  return createClient({
    url,
    // Settings of a file belong to its connection.
    ...(url.startsWith('file:') && { concurrency: 1 }),
    ...(authToken !== undefined && { authToken }),
  });
}

async function loadLibsql(): Promise<typeof import('@libsql/client')> {
  try {
    return await import('@libsql/client');
  } catch (cause) {
    throw failedPrecondition(
      'The libSQL store needs the package "@libsql/client". Install it: npm install @libsql/client',
      { cause },
    );
  }
}
