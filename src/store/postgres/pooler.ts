import type { PoolClient } from 'pg';

/**
 * Whether something between us and the server hands out the server's connections: PgBouncer, Supavisor, RDS Proxy. Such a
 * pooler gives its clients its own keys for cancelling, so the process id that came with the connection is not that of
 * the process which answers. A connection without a key counts as pooled, which is slower but always right.
 */
export async function goesThroughPooler(client: PoolClient): Promise<boolean> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return (client as Keyed).processID !== rows[0]?.pid;
}

/** What a connection holds besides what its types say. */
type Keyed = PoolClient & { readonly processID?: number | null };
